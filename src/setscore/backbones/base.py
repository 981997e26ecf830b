"""The one interface that matters: a backbone answers queries with log-odds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from setscore.records import FloatArray, Query

Attention = Literal["shared", "exact"]


@dataclass(frozen=True)
class BackboneSpec:
    """What differs between backbones, as data; no scorer ever asks which family it talks to."""

    name: str
    family: str
    summary: str
    parameters: int
    context: int  # tokens of document and question together
    attention: tuple[Attention, ...]  # modes on offer, the native one first
    licence: str
    mask: str  # the mask token
    leading_space: bool  # whether an answer carries the space before it (BPE) or not (WordPiece)
    begin: tuple[str, ...] = ()  # special tokens before the prompt,
    after_document: tuple[str, ...] = ()  # between document and question,
    after_question: tuple[str, ...] = ()  # and at the end
    mask_id: int | None = None  # where a checkpoint gives it as a number
    shift: int = 0  # the prediction for position p is read at p - shift
    block: int = 0  # block-causal attention: a token sees the blocks up to its own; 0: it sees everything
    chat: tuple[str, str] | None = None  # what a chat template puts before the prompt, and between it and the answer
    chat_tokens: int = 0  # how many tokens that takes, when the backbone is asked in chat mode
    windows: int = 1  # windows of a long document that are read unless told otherwise; 1 truncates, as the paper does
    temperature: float = 1.0  # of the log-odds before any labelled document was seen,
    competition: float = 0.0  # how much labels compete then,
    handicap: float = 1.0  # and how much of it is against those beside a likely one (calibration/temperature.py)
    set_layout: str = "paper"  # how all labels of a set are written in one prompt (prompts.SET_LAYOUTS)
    repository: str | None = None  # where its weights live on the Hugging Face Hub,
    revision: str | None = None  # and in which version

    special_tokens: int = field(init=False)  # how many tokens a prompt has beyond its text and slots, at most

    def __post_init__(self) -> None:
        around = len(self.begin) + len(self.after_document) + len(self.after_question)
        filling = max(0, self.block - 1)  # masks up to the end of the answer's block
        object.__setattr__(self, "special_tokens", around + self.chat_tokens + filling)


class Backbone(Protocol):
    """Answers queries. A cache, a remote server and a fake for tests wrap the same methods."""

    spec: BackboneSpec
    attention: Attention

    @property
    def identity(self) -> str:
        """A digest of everything that an answer depends on: weights, dtype, tokenizer, attention, special tokens."""
        ...

    def log_odds(self, queries: Sequence[Query]) -> list[FloatArray]:
        """One array per query: log p(yes) - log p(no) at each of its open slots, in their order (Eq. 2).

        Nothing is truncated here: a query that does not fit into `spec.context` is an error.
        """
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The characters [start, end) that each token of `text` covers, for cutting a text at a token."""
        ...


@runtime_checkable
class Emitter(Protocol):
    """What a backbone may offer besides: a look at its whole vocabulary, for emitting text in the open slots."""

    def most_likely(self, queries: Sequence[Query]) -> list[str]:
        """For each query the most likely tokens of its open slots, in their order, as one text."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """What a backbone may offer besides: a sentence embedding of what it reads, at next to no cost."""

    def embed(self, queries: Sequence[Query]) -> list[FloatArray]:
        """For each query the embedding [d] of its prefix and document, of length 1; the question is not read."""
        ...

    def read(self, queries: Sequence[Query]) -> tuple[list[FloatArray], list[FloatArray]]:
        """`log_odds` and `embed` in one: out of the same pass where that can be."""
        ...


@runtime_checkable
class MassReader(Protocol):
    """What a backbone may offer besides: how much of what it would say is one of the two answers."""

    def answer_mass(self, queries: Sequence[Query]) -> list[FloatArray]:
        """p(yes) + p(no) over the whole vocabulary at each open slot of each query."""
        ...
