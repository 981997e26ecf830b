"""A thin layer over `onnx.helper`: nodes and constants by name, nothing else."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 21


class Builder:
    """Collects nodes and constants; every method returns the name of the tensor it makes."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def constant(self, value: np.ndarray | np.generic | int | Sequence[int], name: str | None = None) -> str:
        """A named parameter, or an unnamed small value, which is stored once."""
        array = np.asarray(value)
        if name is None:
            name = f"{array.dtype}_{'x'.join(map(str, array.shape))}_{'_'.join(map(str, array.ravel()))}"
        elif name in self.constants:
            raise ValueError(f"two constants are called {name!r}")
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        return self.ops(kind, *inputs, outputs=1, **attributes)[0]

    def ops(self, kind: str, *inputs: str, outputs: int, domain: str = "", **attributes: object) -> list[str]:
        """An operator with several outputs."""
        node = f"{kind}_{len(self.nodes)}"
        names = [f"{node}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=node, domain=domain, **attributes))
        return names

    def fused(self, kind: str, *inputs: str, **attributes: object) -> str:
        """An operator of onnxruntime's own set: one pass over memory where the standard ones need several."""
        return self.op(kind, *inputs, domain="com.microsoft", **attributes)

    def reshape(self, x: str, *dims: str) -> str:
        """To computed dimensions, each a [1] tensor, any of which may be zero."""
        return self.op("Reshape", x, self.op("Concat", *dims, axis=0), allowzero=1)

    def named(self, x: str, name: str) -> str:
        """Gives the tensor `x` a name of its own, for use as an output."""
        self.nodes.append(helper.make_node("Identity", [x], [name], name=f"output_{name}"))
        return name

    def model(
        self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto], name: str
    ) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, name, list(inputs), list(outputs), list(self.constants.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="setscore")
        onnx.checker.check_model(model)
        return model
