"""What follows from the segments alone: sizes, which cells hold a token, who sees whom.

The first part of the graph; `graph` says what the rows look like.
"""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from recipes.builder import Builder

NEGATIVE = np.float32(-1e9)  # hides a key; not -inf, so that a padding cell that sees nothing stays finite


@dataclass(frozen=True)
class Grid:
    """Names of what follows from the segments alone. Sizes are [1] tensors: B, N, D, m, L, S and mL."""

    batch: str
    columns: str
    document: str
    questions: str
    length: str
    slots: str
    rest: str
    flat: str  # [T] cell numbers of the valid tokens, counting the document cells of all rows first
    cells: str  # [B*N] the valid token of each cell; padding points at some token and is masked
    document_cells: str  # [B*D], [B*mL]: the same, part by part
    question_cells: str
    slot_tokens: str  # [B*S] the valid token of each slot
    document_mask: str  # [B, 1, 1, D], added to attention scores
    question_mask: str  # [B, 1, mL, D+L]
    slot_mask: str  # [B, 1, S, N]
    embedded_cells: str  # [E*D] the valid token of each cell of the documents to embed
    embedded_mask: str  # [E, 1, 1, D]


class GridBuilder(Builder):
    """A builder that reads the inputs `segments`, `slots` and `embedded`."""

    def make_grid(self) -> Grid:
        zero, one, flatten = self.constant(np.int64(0)), self.constant([1]), self.constant([-1])
        batch, columns = self.ops("Split", self.op("Shape", "segments"), outputs=2, num_outputs=2)
        slots = self.op("Slice", self.op("Shape", "slots"), one, self.constant([2]))
        last = self.op("Reshape", self.op("ReduceMax", "segments", keepdims=0), one)
        questions = self.op("Max", self.op("Sub", last, one), zero)
        column = self.op("Range", zero, self.op("Squeeze", columns), self.constant(np.int64(1)))
        is_question = self.op("Greater", "segments", one)
        first = self.op("ReduceMin", self.op("Where", is_question, column, columns), keepdims=0)
        document = self.op("Reshape", first, one)
        rest = self.op("Sub", columns, document)
        length = self.op("Div", rest, self.op("Max", questions, one))

        # Tokens are numbered document by document, then question by question, so both parts stay contiguous.
        valid = self.op("Greater", self.part_by_part("segments", document, rest), zero)
        tokens = self.op("Sub", self.op("CumSum", self.op("Cast", valid, to=TensorProto.INT64), zero), one)
        tokens = self.op("Max", tokens, zero)
        sizes_of_parts = self.op("Mul", self.op("Concat", document, rest, axis=0), batch)
        document_cells, question_cells = self.ops("Split", tokens, sizes_of_parts, outputs=2, axis=0)
        by_row = self.reshape(document_cells, batch, document), self.reshape(question_cells, batch, rest)
        cells = self.op("Concat", *by_row, axis=1)  # [B, N]
        document_mask = self._document_mask(document, rest)
        slot_tokens = self.op("Reshape", self.op("GatherElements", cells, "slots", axis=1), flatten)
        sizes = (batch, columns, document, questions, length, slots, rest)
        return Grid(
            *sizes,
            flat=self.op("Reshape", self.op("NonZero", valid), flatten),
            cells=self.op("Reshape", cells, flatten),
            document_cells=document_cells,
            question_cells=question_cells,
            slot_tokens=slot_tokens,
            document_mask=document_mask,
            question_mask=self._question_mask(batch, document, questions, length, rest),
            slot_mask=self._slot_mask(),
            embedded_cells=self.op("Reshape", self.op("Gather", by_row[0], "embedded"), flatten),
            embedded_mask=self.op("Gather", document_mask, "embedded"),
        )

    def _mask(self, sees: str, *axes: int) -> str:
        mask = self.op("Where", sees, self.constant(np.float32(0)), self.constant(NEGATIVE))
        return self.op("Unsqueeze", mask, self.constant(axes))

    def split_columns(self, x: str, document: str, rest: str, axis: int = 1) -> list[str]:
        return self.ops("Split", x, self.op("Concat", document, rest, axis=0), outputs=2, axis=axis)

    def part_by_part(self, x: str, document: str, rest: str) -> str:
        """[B, N] to [B*D + B*mL]: the document cells of all rows, then their question cells."""
        flatten = self.constant([-1])
        parts = self.split_columns(x, document, rest)
        return self.op("Concat", *(self.op("Reshape", part, flatten) for part in parts), axis=0)

    def _document_mask(self, document: str, rest: str) -> str:
        segments, _ = self.split_columns("segments", document, rest)
        return self._mask(self.op("Greater", segments, self.constant(np.int64(0))), 1, 2)

    def _question_mask(self, batch: str, document: str, questions: str, length: str, rest: str) -> str:
        """Inside a block every valid token has the same segment, so "my own segment" means "not padding"."""
        zero, one = self.constant(np.int64(0)), self.constant([1])
        to_document, own = (self.op("Greater", s, zero) for s in self.split_columns("segments", document, rest))
        to_document = self.op("Unsqueeze", to_document, one)
        to_document = self.op("Expand", to_document, self.op("Concat", batch, rest, document, axis=0))
        own = self.reshape(own, batch, questions, one, length)
        own = self.op("Expand", own, self.op("Concat", batch, questions, length, length, axis=0))
        own = self.reshape(own, batch, rest, length)
        return self._mask(self.op("Concat", to_document, own, axis=2), 1)

    def _slot_mask(self) -> str:
        one = self.constant(np.int64(1))
        mine = self.op("GatherElements", "segments", "slots", axis=1)
        mine, theirs = (self.op("Unsqueeze", x, self.constant([axis])) for x, axis in ((mine, 2), ("segments", 1)))
        sees = self.op("Or", self.op("Equal", theirs, mine), self.op("Equal", theirs, one))
        return self._mask(self.op("And", sees, self.op("Greater", theirs, self.constant(np.int64(0)))), 1)
