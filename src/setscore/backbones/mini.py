"""The embedded backbone: an int8 ONNX graph and its tokenizer inside the package, run by onnxruntime."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnxruntime

from setscore.backbones.base import Attention, BackboneSpec
from setscore.backbones.packing import Packed, Question, Tokens, make_batches, make_rows, pack
from setscore.backbones.tokens import TextTokenizer
from setscore.errors import BackboneError, ScoreError
from setscore.prompts import Verbalizer
from setscore.records import FloatArray, IntArray, Query, Slot

SPEC = BackboneSpec(
    name="setscore-mini",
    family="mini",
    summary="embedded, English, int8 on CPU, no download",
    parameters=22_700_000,
    context=512,
    attention=("shared", "exact"),
    licence="Apache-2.0",
    mask="[MASK]",
    leading_space=False,
    begin=("[CLS]",),
    after_document=("[SEP]",),
    after_question=("[SEP]",),
)

# Measured on two cores: smaller batches leave the matrix units idle, larger ones leave the cache.
BATCH_TOKENS = 4096
ROW_TOKENS = 2048  # beyond this, attention of a row's questions costs more than reading the document again


def default_folder() -> Path:
    """Where the weights lie in the installed package."""
    return Path(str(files("setscore") / "models" / SPEC.name))


@lru_cache(maxsize=4)
def _load(folder: Path, threads: int | None) -> tuple[onnxruntime.InferenceSession, TextTokenizer]:
    """The verified session and tokenizer; loaded once for all classifiers of a process."""
    manifest = folder / "manifest.json"
    try:
        checksums: dict[str, str] = json.loads(manifest.read_text(encoding="utf-8"))["sha256"]
        contents = {name: (folder / name).read_bytes() for name in checksums}
    except (OSError, ValueError, KeyError) as error:
        raise BackboneError(f"{SPEC.name} cannot be read from {folder}: {error}. Install the package again.") from error
    for name, content in contents.items():
        if hashlib.sha256(content).hexdigest() != checksums[name]:
            raise BackboneError(f"{folder / name} is damaged: its SHA-256 is not the recorded one. Install it again.")
    options = onnxruntime.SessionOptions()
    # The graph is written as it should run; onnxruntime's own fusions make it slower (recipes/mini/graph.py).
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.intra_op_num_threads = threads or 0
    session = onnxruntime.InferenceSession(contents["model.onnx"], options, providers=["CPUExecutionProvider"])
    return session, TextTokenizer(folder / "tokenizer.json")


class MiniBackbone:
    """`setscore-mini`. `threads=None` uses every physical core."""

    def __init__(
        self,
        *,
        attention: Attention,
        verbalizer: Verbalizer,
        folder: Path | None = None,
        threads: int | None = None,
    ) -> None:
        self.spec, self.attention = SPEC, attention
        self._session, self._tokenizer = _load(folder or default_folder(), threads)
        self._answers = self._tokenizer.answers(verbalizer, leading_space=SPEC.leading_space)
        self._mask = self._tokenizer.special(SPEC.mask)
        self._begin = self._tokenizer.special(*SPEC.begin)
        self._after_document = self._tokenizer.special(*SPEC.after_document)
        self._after_question = self._tokenizer.special(*SPEC.after_question)

    def __deepcopy__(self, memo: dict[int, object]) -> "MiniBackbone":
        return self  # nothing in it changes, and scikit-learn's `clone` copies every parameter

    def spans(self, text: str) -> list[tuple[int, int]]:
        return self._tokenizer.spans(text)

    def log_odds(self, queries: Sequence[Query]) -> list[FloatArray]:
        """One pass per document (shared) or per query (exact), in batches of like length; the order is restored.

        Equal queries are asked once: it is cheaper, and their answers do not differ by a rounding error.
        """
        numbers = {query: number for number, query in enumerate(dict.fromkeys(queries))}
        answers = [np.empty(query.open_slots) for query in numbers]
        filled = [0] * len(numbers)
        for packed in self.batches(list(numbers)):
            (values,) = self._session.run(["log_odds"], self.inputs(packed))
            for owner, value in zip(packed.owners.ravel().tolist(), values.ravel().tolist(), strict=True):
                if owner >= 0:
                    answers[owner][filled[owner]] = value
                    filled[owner] += 1
        results = [answers[numbers[query]].copy() for query in queries]
        bad = [number for number, values in enumerate(results) if not np.isfinite(values).all()]
        if bad:
            raise ScoreError(f"{SPEC.name} gave NaN or infinity for {len(bad)} queries, the first is number {bad[0]}.")
        return results

    def inputs(self, packed: Packed) -> dict[str, IntArray]:
        """What the graph is fed for one batch."""
        arrays = {name: getattr(packed, name) for name in ("token_ids", "positions", "segments", "slots")}
        return arrays | {"verbalizer": np.array(self._answers, dtype=np.int64)}

    def batches(self, queries: Sequence[Query]) -> Iterator[Packed]:
        """The queries as they are run."""
        shared = self.attention == "shared"
        rows = make_rows(self._group(queries), shared=shared, row_tokens=ROW_TOKENS)
        for batch in make_batches(rows, shared=shared, batch_tokens=BATCH_TOKENS):
            yield pack(batch, shared=shared)

    def _group(self, queries: Sequence[Query]) -> dict[Tokens, list[Question]]:
        """Queries by document, all as tokens; equal texts are tokenised once."""
        groups: dict[tuple[str, str], list[int]] = {}
        for number, query in enumerate(queries):
            groups.setdefault((query.prefix, query.document), []).append(number)
        questions: dict[tuple[str | Slot, ...], tuple[Tokens, tuple[int, ...]]] = {}
        documents: dict[Tokens, list[Question]] = {}
        for (prefix, text), numbers in groups.items():
            ids = self._tokenizer.ids
            document = self._begin + ids(prefix) + ids(text) + self._after_document
            for number in numbers:
                pieces = queries[number].question
                if pieces not in questions:
                    questions[pieces] = self._question(pieces)
                tokens, slots = questions[pieces]
                total = len(document) + len(tokens)
                if total > SPEC.context:
                    raise BackboneError(
                        f"query {number} has {total} tokens, {SPEC.name} reads {SPEC.context}:"
                        " shorten the document or the label."
                    )
                documents.setdefault(document, []).append(Question(number, tokens, slots))
        return documents

    def _question(self, pieces: tuple[str | Slot, ...]) -> tuple[Tokens, tuple[int, ...]]:
        tokens: list[int] = []
        slots: list[int] = []
        for piece in pieces:
            if isinstance(piece, str):
                tokens += self._tokenizer.ids(piece)
            elif piece.answer is None:
                slots.append(len(tokens))
                tokens += self._mask
            else:
                tokens.append(self._answers[0 if piece.answer else 1])
        return (*tokens, *self._after_question), tuple(slots)


load = MiniBackbone
