"""What a run costs: a backbone that counts what it is really asked, and how long it takes."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from setscore.backbones import Backbone, Embedder, Emitter, MassReader
from setscore.backbones.host import peak_memory
from setscore.records import FloatArray, Query, Slot


@dataclass
class Cost:
    """Of what was asked in this process; what a store knew already cost nothing.

    asked      questions, or documents of a baseline
    tokens     of the texts that were read: with shared attention a document counts once for all its questions
    seconds    spent asking
    forwards   passes that the scores take in all, whether they were asked now or known
    memory     bytes at the peak, of the process or of the GPU
    """

    asked: int = 0
    tokens: int = 0
    seconds: float = 0.0
    forwards: int = 0
    memory: int = 0

    def plain(self) -> dict[str, Any]:
        return asdict(self)


class CountingBackbone:
    """Another backbone, and what it was asked. It stands below the store: what is known is not counted."""

    def __init__(self, backbone: Backbone, cost: Cost) -> None:
        self.backbone, self.cost = backbone, cost
        self.spec, self.attention = backbone.spec, backbone.attention
        self.spans = backbone.spans
        if isinstance(backbone, Embedder):  # else a read-out would learn from another model's embeddings
            self._embedder = backbone
            self.embed, self.read = self._embed, self._read
        if isinstance(backbone, Emitter):
            self.most_likely = backbone.most_likely
        if isinstance(backbone, MassReader):
            self.answer_mass = backbone.answer_mass

    def __deepcopy__(self, memo: dict[int, object]) -> "CountingBackbone":
        return self  # scikit-learn copies parameters; the count is one

    @property
    def identity(self) -> str:
        return self.backbone.identity

    def log_odds(self, queries: Sequence[Query]) -> list[FloatArray]:
        begun = time.perf_counter()
        answers = self.backbone.log_odds(queries)
        self._count(queries, time.perf_counter() - begun, asked=len(queries))
        return answers

    def _embed(self, queries: Sequence[Query]) -> list[FloatArray]:
        """Documents are read for it, and nothing is asked."""
        begun = time.perf_counter()
        vectors = self._embedder.embed(queries)
        self._count([replace(query, question=()) for query in queries], time.perf_counter() - begun, asked=0)
        return vectors

    def _read(self, queries: Sequence[Query]) -> tuple[list[FloatArray], list[FloatArray]]:
        begun = time.perf_counter()
        found = self._embedder.read(queries)
        self._count(queries, time.perf_counter() - begun, asked=len(queries))
        return found

    def _count(self, queries: Sequence[Query], seconds: float, *, asked: int) -> None:
        self.cost.seconds += seconds
        self.cost.asked += asked
        self.cost.tokens += self._tokens(queries)
        self.cost.memory = most_memory()

    def _tokens(self, queries: Sequence[Query]) -> int:
        counts: dict[str, int] = {}

        def count(text: str) -> int:
            if text not in counts:
                counts[text] = len(self.spans(text))
            return counts[text]

        documents = [query.prefix + query.document for query in queries]
        read = set(documents) if self.attention == "shared" else documents
        questions = (
            sum(1 if isinstance(piece, Slot) else count(piece) for piece in query.question) for query in queries
        )
        return sum(map(count, read)) + sum(questions)


def most_memory() -> int:
    """The most bytes that were in use so far: on the GPU if torch uses one, else of the process."""
    import sys

    torch = sys.modules.get("torch")  # whoever uses a GPU has imported it
    if torch is not None and torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    return peak_memory()
