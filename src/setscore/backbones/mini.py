"""The embedded backbone: an int8 ONNX graph and its tokenizer inside the package, run by onnxruntime."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnxruntime

from setscore.backbones.asking import (
    Adjustment,
    AskingBackbone,
    Documents,
    Packed,
    Prompter,
    Row,
    Tokens,
    make_batches,
    make_rows,
    pack,
)
from setscore.backbones.base import Attention, BackboneSpec
from setscore.backbones.host import peak_memory
from setscore.backbones.options import DEFAULT, RunOptions
from setscore.backbones.specs import EMBEDDED, MINI
from setscore.backbones.tokens import TextTokenizer
from setscore.errors import BackboneError
from setscore.prompts import Verbalizer
from setscore.records import FloatArray, IntArray, Query

SPEC = MINI
# Measured on two cores: smaller batches leave the matrix units idle, larger ones leave the cache.
BATCH_TOKENS = 4096
EMBEDDED_TOKENS = 2048  # of documents without questions: the same, measured for them
MANIFEST_BYTES = 65_536  # that are read of it
GRID = 16  # documents are as wide as a multiple of this: many share a batch, and none is rounded by its neighbours
ROW_TOKENS = 2048  # beyond this, attention of a row's questions costs more than reading the document again


def default_folder(name: str = SPEC.name) -> Path:
    """Where the weights lie in the installed package."""
    return Path(str(files("setscore") / "models" / name))


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 by file, as the manifest has them."""
    manifest = folder / "manifest.json"
    try:
        with manifest.open("rb") as file:
            found = json.loads(file.read(MANIFEST_BYTES))["sha256"]
        whole = {"model.onnx", "tokenizer.json"} <= found.keys()
    except OSError as error:
        raise BackboneError(f"{SPEC.name} cannot be read from {folder}: {error}. Install the package again.") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        found, whole = {}, False
    if not whole or any(Path(name).name != name or not isinstance(digest, str) for name, digest in found.items()):
        raise BackboneError(
            f"{manifest} is damaged: it must give a SHA-256 for model.onnx and tokenizer.json, and name no folder."
            " Install the package again."
        )
    return dict(found)


def load_files(folder: Path, threads: int | None) -> tuple[onnxruntime.InferenceSession, TextTokenizer]:
    """The verified session and tokenizer; loaded once for all classifiers of a process, until the files are others."""
    return _loaded(folder.resolve(), threads, tuple(sorted(checksums(folder).items())))


@lru_cache(maxsize=4)
def _loaded(
    folder: Path, threads: int | None, manifest: tuple[tuple[str, str], ...]
) -> tuple[onnxruntime.InferenceSession, TextTokenizer]:
    recorded = dict(manifest)
    try:
        contents = {name: (folder / name).read_bytes() for name in recorded}
    except OSError as error:
        raise BackboneError(f"{SPEC.name} cannot be read from {folder}: {error}. Install the package again.") from error
    for name, content in contents.items():
        if hashlib.sha256(content).hexdigest() != recorded[name]:
            raise BackboneError(f"{folder / name} is damaged: its SHA-256 is not the recorded one. Install it again.")
    options = onnxruntime.SessionOptions()
    # The graph is written as it should run; onnxruntime's own fusions make it slower (recipes/graph.py).
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.intra_op_num_threads = threads or 0
    # Threads that wait for the next run would otherwise keep the cores from whatever comes between two of them.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        session = onnxruntime.InferenceSession(contents["model.onnx"], options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own kinds; the manifest fits the file, so it was made wrong
        line = str(error).strip().splitlines()[0]
        raise BackboneError(f"{folder / 'model.onnx'} is no graph that onnxruntime reads: {line}") from error
    return session, TextTokenizer(folder / "tokenizer.json")


class MiniBackbone(AskingBackbone):
    """An embedded model: `spec` says which, `folder` where one like it lies. `threads=None` uses all physical cores."""

    def __init__(
        self,
        *,
        attention: Attention,
        verbalizer: Verbalizer,
        folder: Path | None = None,
        threads: int | None = None,
        adjustment: Adjustment | None = None,
        spec: BackboneSpec = SPEC,
    ) -> None:
        self._folder = folder or default_folder(spec.name)
        self._recorded = checksums(self._folder)
        self._session, tokenizer = _loaded(self._folder.resolve(), threads, tuple(sorted(self._recorded.items())))
        super().__init__(Prompter(spec, tokenizer, verbalizer), attention, adjustment)

    def values(self, documents: Documents, vectors: dict[int, FloatArray] | None = None) -> Iterator[tuple[int, float]]:
        """One pass per document (shared) or per query (exact), in batches of like length.

        Embeddings of the documents go into `vectors`, by query, where that is given.
        """
        for owners, logits in self._logits(documents, self.prompter.answers, vectors):
            yield from zip(owners, (logits[:, 0] - logits[:, 1]).tolist(), strict=True)

    def read(self, queries: Sequence[Query]) -> tuple[list[FloatArray], list[FloatArray]]:
        """Log-odds and embeddings, of one pass where documents are read once and asked as they stand."""
        if self.attention != "shared" or self.adjustment != Adjustment():
            return self.log_odds(queries), self.embed(queries)
        vectors: dict[int, FloatArray] = {}
        answers = self._asked(queries, values=partial(self.values, vectors=vectors))
        numbers = {query: number for number, query in enumerate(dict.fromkeys(queries))}
        return answers, [vectors[numbers[query]] for query in queries]

    def embed(self, queries: Sequence[Query]) -> list[FloatArray]:
        """As `read` does; where a document sees its question it is embedded without the words of the prompt."""
        shared = self.attention == "shared"
        bare = [Query(query.prefix if shared else "", query.document, ()) for query in queries]
        numbers = {query: number for number, query in enumerate(dict.fromkeys(bare))}
        documents = list(self.prompter.documents(list(numbers)).items())
        found: dict[int, FloatArray] = {}
        for places, inputs in embedding_batches([tokens for tokens, _ in documents]):
            (vectors,) = self._session.run(["embedding"], inputs)
            for place, vector in zip(places, vectors, strict=True):
                found |= dict.fromkeys((question.query for question in documents[place][1]), vector)
        return [found[numbers[query]] for query in bare]

    def answer_mass(self, queries: Sequence[Query]) -> list[FloatArray]:
        """p(yes) + p(no) over the whole vocabulary at each open slot."""
        found: list[list[float]] = [[] for _ in queries]
        for owners, logits in self._logits(self.prompter.documents(queries), self._vocabulary):
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            mass = shares[:, self.prompter.answers].sum(axis=1) / shares.sum(axis=1)
            for owner, value in zip(owners, mass.tolist(), strict=True):
                found[owner].append(value)
        return [np.array(values) for values in found]

    def most_likely(self, queries: Sequence[Query]) -> list[str]:
        """The most likely tokens of each query's open slots, as one text."""
        found: list[list[int]] = [[] for _ in queries]
        for owners, logits in self._logits(self.prompter.documents(queries), self._vocabulary):
            for owner, token in zip(owners, logits.argmax(axis=1).tolist(), strict=True):
                found[owner].append(token)
        return [self.prompter.tokenizer.text(tokens) for tokens in found]

    def weights(self) -> dict[str, str]:
        return {"weights": self._recorded["model.onnx"], "dtype": "int8"}

    @property
    def _vocabulary(self) -> Sequence[int]:
        return range(self.prompter.tokenizer.size)

    def _logits(
        self, documents: Documents, words: Sequence[int], vectors: dict[int, FloatArray] | None = None
    ) -> Iterator[tuple[list[int], FloatArray]]:
        """Batch by batch: of each slot the query's number, and the logits of `words` [slots, words]."""
        found = {} if vectors is None else vectors
        wanted = set() if vectors is None else set(documents)
        for rows, packed in self._packed(documents):
            fresh = {row.document: b for b, row in enumerate(rows) if row.document in wanted}  # in one of its rows
            inputs = self.inputs(packed, words) | {"embedded": np.array(list(fresh.values()), dtype=np.int64)}
            logits, embedded = self._session.run(["logits", "embedding"], inputs)
            for tokens, vector in zip(fresh, embedded, strict=True):
                wanted.remove(tokens)
                found |= dict.fromkeys((question.query for question in documents[tokens]), vector)
            owners = packed.owners.ravel()
            yield owners[owners >= 0].tolist(), logits.reshape(-1, len(words))[owners >= 0]

    def facts(self) -> dict[str, str]:
        """The shared facts, and those of the packaged files."""
        size = sum((self._folder / name).stat().st_size for name in self._recorded)
        more = {
            "revision": f"model.onnx with SHA-256 {self._recorded['model.onnx'][:12]}..., verified",
            "weights": f"{self.spec.parameters / 1e6:.1f} M parameters, {size / 1e6:.1f} MB on disk",
            "dtype": f"int8 on the CPU; passes of {BATCH_TOKENS} tokens",
            "memory": f"{peak_memory() / 1e6:.0f} MB at most in this process so far",
        }
        return super().facts() | more

    def inputs(self, packed: Packed, words: Sequence[int]) -> dict[str, IntArray]:
        """What the graph is fed for one batch, to read the logits of `words` and no embedding."""
        arrays = {name: getattr(packed, name) for name in ("token_ids", "positions", "segments", "slots")}
        return arrays | {"words": np.array(words, dtype=np.int64), "embedded": np.zeros(0, dtype=np.int64)}

    def batches(self, queries: Sequence[Query]) -> Iterator[Packed]:
        """The queries as they are run."""
        return (packed for _, packed in self._packed(self.prompter.documents(queries)))

    def _packed(self, documents: Documents) -> Iterator[tuple[list[Row], Packed]]:
        shared = self.attention == "shared"
        rows = make_rows(documents, shared=shared, row_tokens=ROW_TOKENS)
        for batch in make_batches(rows, shared=shared, batch_tokens=BATCH_TOKENS, grid=GRID):
            yield batch, pack(batch, shared=shared, grid=GRID)


def embedding_batches(
    rows: Sequence[Tokens], batch_tokens: int = EMBEDDED_TOKENS
) -> Iterator[tuple[list[int], dict[str, IntArray]]]:
    """Numbers of rows of one width, and what the graph is fed for their embeddings: no slot, so no head."""
    by_width: dict[int, list[int]] = {}  # a row is as wide in a batch as it is alone, so that its vector is the same
    for number, row in enumerate(rows):
        by_width.setdefault(-(-len(row) // GRID) * GRID, []).append(number)
    for width, numbers in by_width.items():
        size = max(1, batch_tokens // width)
        for start in range(0, len(numbers), size):
            batch = numbers[start : start + size]
            yield batch, _bare_inputs([rows[place] for place in batch], width)


def _bare_inputs(rows: Sequence[Tokens], width: int) -> dict[str, IntArray]:
    """Rows of token ids as documents without questions."""
    shape = (len(rows), width)
    token_ids, segments = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for place, row in enumerate(rows):
        token_ids[place, : len(row)], segments[place, : len(row)] = row, 1
    return {
        "token_ids": token_ids,
        "positions": np.ascontiguousarray(np.broadcast_to(np.arange(shape[1], dtype=np.int64), shape)),
        "segments": segments,
        "slots": np.zeros((shape[0], 0), dtype=np.int64),
        "words": np.zeros(0, dtype=np.int64),
        "embedded": np.arange(shape[0], dtype=np.int64),
    }


def spec_of(name: str, options: RunOptions) -> BackboneSpec:  # noqa: ARG001
    return EMBEDDED.get(name, SPEC)


def load(
    name: str, *, attention: Attention, verbalizer: Verbalizer, threads: int | None, options: RunOptions
) -> MiniBackbone:
    """The embedded backbone, or one like it in a folder; of the options only guidance and prior mean anything to it."""
    adjustment = None if options == DEFAULT else _adjustment(name, options)
    return MiniBackbone(
        attention=attention,
        verbalizer=verbalizer,
        folder=None if name in EMBEDDED else Path(name),
        threads=threads,
        adjustment=adjustment,
        spec=EMBEDDED.get(name, SPEC),
    )


def _adjustment(name: str, options: RunOptions) -> Adjustment:
    other = set(options.changed()) - {"guidance", "prior"}
    if other and (options.device, other) != ("cpu", {"device"}):
        raise BackboneError(f"{name} is int8 on the CPU and has one version; leave out {', '.join(sorted(other))}.")
    return Adjustment(options.guidance, options.prior)
