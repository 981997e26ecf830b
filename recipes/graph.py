"""The embedded model as an ONNX graph, in fp32 or in int8.

One graph serves both attention modes. Its rows follow the grid that `setscore.backbones.asking` lays out:

    columns 0 .. D-1              the document: segment 1
    columns D+(j-2)L .. +L-1      question j:   segment j = 2, 3, ...
    anywhere                      padding:      segment 0

A token sees segment 1 and its own segment. In exact mode the question belongs to segment 1, so D = N and m = 0.

Inputs    token_ids, positions, segments  int64 [B, N]   N = D + m L
          slots                           int64 [B, S]   columns to read
          words                           int64 [W]      token ids whose logits are wanted: yes and no, or all
          embedded                        int64 [E]      rows whose sentence embedding is wanted: all, or none
Outputs   logits                          float [B, S, W]
          embedding                       float [E, H]   the mean of the document's last hidden states, of length 1

Where the time goes, and what is done about it:

- Linear layers run on the valid tokens only (flat [T, H]): padding costs nothing there.
- Document attention is D x D, question attention is (m L) x (D + L): never N x N.
- The last layer computes keys and values for all tokens, and everything else for the slots and for the documents to
  embed. onnxruntime runs the whole graph whatever is asked for, so what is not wanted has zero rows: S = 0 costs no
  head, E = 0 no embedding.
- int8 (see `quantize`): fixed scales per input channel, folded into the weights: nothing is measured at run time. The
  last layer has two sets of them: slots and document tokens are loud in different channels.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from recipes.grid import GridBuilder
from recipes.quantize import QuantizedLinear

Array = np.ndarray
DOCUMENT = ".document"  # ends the name of a last layer's part where it reads document tokens


@dataclass(frozen=True)
class Shape:
    """The size of the model; the defaults are those of all-MiniLM-L6-v2."""

    layers: int = 6
    width: int = 384
    heads: int = 12
    epsilon: float = 1e-12

    @classmethod
    def of(cls, weights: Mapping[str, Array]) -> "Shape":
        """The shape of these weights; heads are 32 wide."""
        layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("l."))
        width = weights["word.weight"].shape[1]
        return cls(layers, width, width // 32)

    @property
    def head_width(self) -> int:
        return self.width // self.heads


def export(
    weights: Mapping[str, Array],
    shape: Shape | None = None,
    *,
    quantized: Mapping[str, QuantizedLinear] | None = None,
    observe: bool = False,
) -> onnx.ModelProto:
    """The graph of `weights` (of the shape they have): fp32, or int8 where `quantized` gives the linear layers.

    `observe` adds outputs for each linear layer's input: NAME.low and NAME.high [K], NAME.moments [K, K].
    """
    return _MiniGraph(weights, shape or Shape.of(weights), quantized, observe).build()


def joint_projection(weights: Mapping[str, Array], shape: Shape, layer: int) -> tuple[Array, Array]:
    """Weight and bias of query, key and value together, with 1/sqrt(d) folded into the query rows."""
    factor = np.ones(3 * shape.width, np.float32)
    factor[: shape.width] = shape.head_width**-0.5
    weight, bias = weights[f"l.{layer}.qkv.weight"], weights[f"l.{layer}.qkv.bias"]
    return weight.astype(np.float32) * factor[:, None], bias.astype(np.float32) * factor


def layer_weight(weights: Mapping[str, Array], shape: Shape, name: str) -> Array:
    """The weight [out, K] of a linear layer under the name that it is observed and quantised by."""
    if name.endswith(".qkv"):
        return joint_projection(weights, shape, int(name.split(".")[1]))[0]
    return weights[f"{name.removesuffix(DOCUMENT)}.weight"]


class _MiniGraph(GridBuilder):
    def __init__(
        self,
        weights: Mapping[str, Array],
        shape: Shape,
        quantized: Mapping[str, QuantizedLinear] | None,
        observe: bool,
    ) -> None:
        super().__init__()
        self.weights, self.shape, self.quantized = weights, shape, quantized
        self.observed: list[str] | None = [] if observe else None

    def build(self) -> onnx.ModelProto:
        self.grid = self.make_grid()
        x = self._embed()
        for layer in range(self.shape.layers - 1):
            x = self._layer(x, layer)
        at_slots, at_documents = self._last_layer(x, self.shape.layers - 1)
        shape = (self.grid.batch, self.grid.slots, self.op("Shape", "words"))
        self.named(self.reshape(self._head(at_slots), *shape), "logits")
        self.named(self._pooled(at_documents), "embedding")

        def integer(name: str, *dims: str | int) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, TensorProto.INT64, dims)

        inputs = [integer(name, "batch", "columns") for name in ("token_ids", "positions", "segments")]
        inputs += [integer("slots", "batch", "slots"), integer("words", "words"), integer("embedded", "embedded")]
        outputs = [
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "slots", "words"]),
            helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["embedded", self.shape.width]),
        ]
        for name in self.observed or []:
            dims = ["K1", "K2"] if name.endswith(".moments") else ["K1"]
            outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        return self.model(inputs, outputs, "setscore_mini")

    # Parts of the transformer

    def _stored(self, name: str, value: Array) -> str:
        """A parameter that several nodes read."""
        return name if name in self.constants else self.constant(value, name)

    def _parameter(self, name: str) -> str:
        return self._stored(name, self.weights[name].astype(np.float32))

    def _word_rows(self, ids: str) -> str:
        """Rows of the word table, [n, H]; int8 rows carry a scale each."""
        table = self.weights["word.weight"].astype(np.float32)
        if self.quantized is None:
            return self.op("Gather", self._parameter("word.weight"), ids)
        scale = np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-12) / 127
        if "word.codes" not in self.constants:
            self.constant(np.rint(table / scale).astype(np.int8), "word.codes")
            self.constant(scale.astype(np.float32), "word.scale")
        rows = self.op("Cast", self.op("Gather", "word.codes", ids), to=TensorProto.FLOAT)
        return self.op("Mul", rows, self.op("Gather", "word.scale", ids))

    def _embed(self) -> str:
        """The sum of word, position and token type, normalised: [T, H]."""
        ids, positions = (
            self.op("Gather", self.part_by_part(name, self.grid.document, self.grid.rest), self.grid.flat)
            for name in ("token_ids", "positions")
        )
        table = self.weights["pos.weight"].astype(np.float32) + self.weights["typ.weight"][0].astype(np.float32)
        places = self.op("Gather", self.constant(table, "position.weight"), positions)
        return self._norm("ln", self.op("Add", self._word_rows(ids), places))

    def _norm(self, name: str, x: str) -> str:
        scale, bias = self._parameter(f"{name}.weight"), self._parameter(f"{name}.bias")
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=self.shape.epsilon)

    def _input(self, name: str, x: str) -> str:
        """`x` as the linear layer `name` reads it: uint8 codes if that layer is quantised."""
        if self.observed is not None:
            axis = self.constant([0])
            self.observed += [
                self.named(self.op("ReduceMin", x, axis, keepdims=0), f"{name}.low"),
                self.named(self.op("ReduceMax", x, axis, keepdims=0), f"{name}.high"),
                self.named(self.op("MatMul", self.op("Transpose", x, perm=[1, 0]), x), f"{name}.moments"),
            ]
        if self.quantized is None:
            return x
        linear = self.quantized[name]
        # onnxruntime quantises with one scale at memory speed and with a scale per channel fifty times slower.
        x = self.op("Mul", x, self.constant(1 / linear.scale, f"{name}.inverse_scale"))
        codes = self.op("QuantizeLinear", x, self.constant(np.float32(1)), self.constant(np.uint8(linear.zero)))
        copies = self.op("Gather", codes, self.constant(linear.copies, f"{name}.copies"), axis=1)
        return self.op("Concat", codes, copies, axis=1)

    def _product(self, name: str, x: str, weight: Array, linear: QuantizedLinear | None, bias: Array) -> str:
        """x @ weight.T + bias; with `linear`, x holds its uint8 codes. Parameters of one name are stored once."""
        offset = self._stored(f"{name}.offset", bias.astype(np.float32))
        if linear is None:
            y = self.op("MatMul", x, self._stored(f"{name}.matrix", weight.astype(np.float32).T))
            return self.op("Add", y, offset)
        codes, step = self._stored(f"{name}.codes", linear.codes), self._stored(f"{name}.step", linear.step)
        zero = self._stored(f"{name}.zero", np.zeros(linear.codes.shape[1], np.int8))
        one, input_zero = self.constant(np.float32(1)), self.constant(np.uint8(linear.zero))
        return self.fused("MatMulIntegerToFloat", x, codes, one, step, input_zero, zero, offset)

    def _linear(self, name: str, x: str) -> str:
        linear = None if self.quantized is None else self.quantized[name]
        weight, bias = (self.weights[f"{name.removesuffix(DOCUMENT)}.{kind}"] for kind in ("weight", "bias"))
        return self._product(name, self._input(name, x), weight, linear, bias)

    def _heads(self, x: str, columns: str, rows: str | None = None) -> str:
        """[B*columns, H] to [B, A, columns, d]; `rows` where they are not the batch's."""
        width, heads = self.constant([self.shape.head_width]), self.constant([self.shape.heads])
        shape = (rows or self.grid.batch, columns, heads, width)
        return self.op("Transpose", self.reshape(x, *shape), perm=[0, 2, 1, 3])

    def _tokens(self, x: str) -> str:
        """[B, A, n, d] to [B*n, H]."""
        x = self.op("Transpose", x, perm=[0, 2, 1, 3])
        return self.op("Reshape", x, self.constant([-1, self.shape.width]))

    def _inner(self, query: str, key: str) -> str:
        """query @ key^T over the last axis, without a transposed copy."""
        return self.fused("FusedMatMul", query, key, transB=1)

    def _after_attention(self, name: str, attended: str, x: str, part: str = "") -> str:
        """The rest of layer `name` for the tokens `x` [n, H]; `part` is DOCUMENT where the last layer embeds."""
        x = self._norm(f"{name}.n1", self.op("Add", self._linear(f"{name}.o{part}", attended), x))
        down = self._linear(f"{name}.d{part}", self.op("Gelu", self._linear(f"{name}.u{part}", x)))
        return self._norm(f"{name}.n2", self.op("Add", down, x))

    # Layers

    def _layer(self, x: str, layer: int) -> str:
        name, shape, grid = f"l.{layer}", self.shape, self.grid
        weight, bias = joint_projection(self.weights, shape, layer)
        linear = None if self.quantized is None else self.quantized[f"{name}.qkv"]
        joint = self._product(f"{name}.qkv", self._input(f"{name}.qkv", x), weight, linear, bias)
        rows = self.op("Reshape", joint, self.constant([-1, shape.width]))  # query, key, value of token 0, of 1, ...
        document = self._document_attention(rows)
        question = self._question_attention(rows, *document[1:])
        parts = [self._tokens(document[0]), self._tokens(question)]
        attended = self.op("Gather", self.op("Concat", *parts, axis=0), grid.flat)
        return self._after_attention(name, attended, x)

    def _parts(self, rows: str, cells: str, count: str) -> list[str]:
        """Query, key and value of `cells`, [B, A, count, d] each: one copy from the joint projection, one to heads."""
        first = self.op("Mul", cells, self.constant(np.int64(3)))
        indices = [self.op("Add", first, self.constant(np.int64(part))) for part in range(3)]
        return [self._heads(self.op("Gather", rows, index), count) for index in indices]

    def _document_attention(self, rows: str) -> tuple[str, str, str]:
        """The document's attention output, and its keys and values for the questions: [B, A, D, d]."""
        query, key, value = self._parts(rows, self.grid.document_cells, self.grid.document)
        scores = self.op("Add", self._inner(query, key), self.grid.document_mask)
        return self.op("MatMul", self.op("Softmax", scores, axis=-1), value), key, value

    def _question_attention(self, rows: str, document_key: str, document_value: str) -> str:
        """Each question against the document and itself: [B, A, mL, d]."""
        grid, heads, width = self.grid, self.constant([self.shape.heads]), self.constant([self.shape.head_width])

        def blocks(x: str, last: str) -> str:
            return self.reshape(x, grid.batch, heads, grid.questions, grid.length, last)

        query, key, value = self._parts(rows, grid.question_cells, grid.rest)
        own = self._inner(blocks(query, width), blocks(key, width))
        own = self.reshape(own, grid.batch, heads, grid.rest, grid.length)
        scores = self.op("Concat", self._inner(query, document_key), own, axis=3)
        weights = self.op("Softmax", self.op("Add", scores, grid.question_mask), axis=-1)
        to_document, to_own = self.split_columns(weights, grid.document, grid.length, axis=3)
        from_own = self.op("MatMul", blocks(to_own, grid.length), blocks(value, width))
        from_own = self.reshape(from_own, grid.batch, heads, grid.rest, width)
        return self.op("Add", self.op("MatMul", to_document, document_value), from_own)

    def _last_layer(self, x: str, layer: int) -> tuple[str, str]:
        """Keys and values of every token; queries and all that follows for slots [B*S, H] and documents [E*D, H]."""
        name, width, grid = f"l.{layer}", self.shape.width, self.grid
        weight, bias = joint_projection(self.weights, self.shape, layer)
        codes = self._input(f"{name}.qkv", x)

        def product(part: str, codes: str, start: int, stop: int) -> str:
            linear = None if self.quantized is None else self.quantized[f"{name}.qkv"].columns(start, stop)
            return self._product(f"{name}.{part}", codes, weight[start:stop], linear, bias[start:stop])

        both = product("kv", codes, width, 3 * width)

        def read(rows: str, mask: str, query: tuple[str, str], key: tuple[str, str]) -> tuple[str, str]:
            """What the tokens of `query` see of those of `key`, and themselves; both are (tokens, how many a row)."""
            seen = self.ops("Split", self.op("Gather", both, key[0]), outputs=2, axis=1, num_outputs=2)
            keys, values = (self._heads(part, key[1], rows) for part in seen)
            queries = self._heads(product("q", self.op("Gather", codes, query[0]), 0, width), query[1], rows)
            weights = self.op("Softmax", self.op("Add", self._inner(queries, keys), mask), axis=-1)
            return self._tokens(self.op("MatMul", weights, values)), self.op("Gather", x, query[0])

        cells, document = (grid.cells, grid.columns), (grid.embedded_cells, grid.document)
        slots = read(grid.batch, grid.slot_mask, (grid.slot_tokens, grid.slots), cells)
        documents = read(self.op("Shape", "embedded"), grid.embedded_mask, document, document)
        return self._after_attention(name, *slots), self._after_attention(name, *documents, DOCUMENT)

    def _pooled(self, x: str) -> str:
        """Hidden states of the documents to embed [E*D, H] to their mean without padding, of length 1 [E, H]."""
        width = self.constant([self.shape.width])
        x = self.reshape(x, self.op("Shape", "embedded"), self.grid.document, width)
        shown = self.op("Equal", self.grid.embedded_mask, self.constant(np.float32(0)))  # [E, 1, 1, D]
        shown = self.op("Squeeze", self.op("Cast", shown, to=TensorProto.FLOAT), self.constant([1]))
        total = self.op("Squeeze", self.op("MatMul", shown, x), self.constant([1]))
        length = self.op("ReduceL2", total, self.constant([1]), keepdims=1)
        return self.op("Div", total, self.op("Max", length, self.constant(np.float32(1e-12))))

    def _head(self, x: str) -> str:
        """Logits of the wanted words [B*S, W], from their rows of the tied table."""
        h = self._product("t", x, self.weights["t.weight"], None, self.weights["t.bias"])
        h = self._norm("tn", self.op("Gelu", h))
        logits = self.op("MatMul", h, self.op("Transpose", self._word_rows("words"), perm=[1, 0]))
        return self.op("Add", logits, self.op("Gather", self._parameter("b"), "words"))
