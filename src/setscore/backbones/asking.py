"""From queries to answers, for backbones with a tokenizer: queries as tokens, tokens as rows, each asked once.

In a row the document stands once and its questions beside it, with as little padding as can be, in a grid of
N = D + m L columns:

    segment    1 1 1 1 1 1 | 2 2 2 2 . | 3 3 3 3 3 | 4 4 . . .       a dot is padding, segment 0
    position   0 1 2 3 4 5 | 6 7 8 9   | 6 7 8 9 10| 6 7             each question goes on after the document

A token sees segment 1 and its own segment. In `exact` mode each row has one question, and that question belongs to
segment 1, so the document sees it too: the attention of the paper. In `shared` mode the document sees only itself and
is computed once for all its questions, so m (D + Q) tokens become D + m Q.
"""

import hashlib
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from setscore.backbones.base import Attention, BackboneSpec
from setscore.backbones.tokens import TextTokenizer
from setscore.errors import BackboneError, ScoreError
from setscore.prompts import Verbalizer
from setscore.records import FloatArray, IntArray, Query, Slot

PROMPTING = 1  # how this module makes tokens of queries; whoever changes that counts on, so that no old answer is taken
Pieces = tuple[str | Slot, ...]
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Question:
    """The tokens of one query's question and the offsets in it that are read."""

    query: int  # the query's number among those asked
    tokens: Tokens
    slots: tuple[int, ...]


Documents = dict[Tokens, list[Question]]
Values = Callable[[Documents], Iterator[tuple[int, float]]]  # see `AskingBackbone.values`


@dataclass(frozen=True)
class Row:
    """One document (with everything before it) and the questions asked about it in one pass."""

    document: Tokens
    questions: tuple[Question, ...]

    @property
    def longest(self) -> int:
        return max(len(question.tokens) for question in self.questions)

    @property
    def tokens(self) -> int:
        """Tokens without any padding."""
        return len(self.document) + sum(len(question.tokens) for question in self.questions)


@dataclass(frozen=True)
class Packed:
    """Rows as arrays, and for each slot read which query it answers."""

    token_ids: IntArray  # [B, N]
    positions: IntArray  # [B, N]
    segments: IntArray  # [B, N]
    slots: IntArray  # [B, S] columns
    owners: IntArray  # [B, S] query numbers; -1 where a row has fewer slots than S


def fit_blocks(documents: Documents, *, shared: bool, block: int, mask: int) -> Documents:
    """Documents and questions for a block-causal model; as they are when block is 0.

    The answer's block is filled with masks to its end, as when the model writes. With shared attention a document ends
    on a block boundary, so its last tokens, those of a begun block, go with each question: the split changes nothing.
    """
    if block == 0:
        return documents
    fitted: Documents = {}
    for document, questions in documents.items():
        cut = len(document) // block * block if shared else len(document)
        begun = document[cut:]
        for question in questions:
            filling = (mask,) * (-(len(document) + len(question.tokens)) % block)
            slots = tuple(slot + len(begun) for slot in question.slots)
            moved = Question(question.query, begun + question.tokens + filling, slots)
            fitted.setdefault(document[:cut], []).append(moved)
    return fitted


def make_rows(documents: Documents, *, shared: bool, row_tokens: int) -> list[Row]:
    """One row per question, or per document and as many of its questions as `row_tokens` allows.

    Questions of one row are padded to the longest of them, so they are split by length, not in the order asked. Equal
    lengths go by their tokens: then no rounding error depends on the order of the labels either.
    """
    rows: list[Row] = []
    for document, questions in documents.items():
        if not shared:
            rows += [Row(document, (question,)) for question in questions]
            continue
        ordered = sorted(questions, key=lambda question: (len(question.tokens), question.tokens))
        while ordered:
            count = max(1, (row_tokens - len(document)) // len(ordered[-1].tokens))
            rows.append(Row(document, tuple(ordered[-count:])))
            del ordered[-count:]
    return rows


def make_batches(rows: Sequence[Row], *, shared: bool, batch_tokens: int, grid: int = 1) -> Iterator[list[Row]]:
    """Rows of one shape together, each batch within `batch_tokens` cells (a single larger row goes alone).

    Sums of floating-point numbers are rounded differently over rows of another length. So a row is as wide in a batch
    as it is alone, its document rounded up to a multiple of `grid`, and no answer depends on what else was asked.
    """

    def shape(row: Row) -> tuple[int, int]:
        return _up(len(row.document), grid) if shared else _up(len(row.document) + row.longest, grid), row.longest

    batch: list[Row] = []
    for row in sorted(rows, key=lambda row: (*shape(row), len(row.questions)), reverse=True):
        widened = [*batch, row]
        cells = _columns(widened, shared=shared, grid=grid) * len(widened)
        if batch and (shape(row)[: 1 + shared] != shape(batch[0])[: 1 + shared] or cells > batch_tokens):
            yield batch
            widened = [row]
        batch = widened
    if batch:
        yield batch


def _up(length: int, grid: int) -> int:
    return -(-length // grid) * grid


def _columns(rows: Sequence[Row], *, shared: bool, grid: int) -> int:
    if not shared:
        return _up(max(len(row.document) + row.longest for row in rows), grid)
    return _up(max(len(row.document) for row in rows), grid) + max(len(row.questions) for row in rows) * max(
        row.longest for row in rows
    )


def pack(rows: Sequence[Row], *, shared: bool, grid: int = 1) -> Packed:
    """The arrays of one batch."""
    width, length = _up(max(len(row.document) for row in rows), grid), max(row.longest for row in rows)
    shape = (len(rows), _columns(rows, shared=shared, grid=grid))
    token_ids, positions, segments = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    # At least two: a product of one row only is computed by another kernel, which rounds in another way.
    slot_count = max(2, *(sum(len(question.slots) for question in row.questions) for row in rows))
    slots = np.zeros((len(rows), slot_count), dtype=np.int64)
    owners = np.full((len(rows), slot_count), -1, dtype=np.int64)
    for b, row in enumerate(rows):
        start = len(row.document)
        token_ids[b, :start], positions[b, :start], segments[b, :start] = row.document, np.arange(start), 1
        read = 0
        for j, question in enumerate(row.questions):
            column = width + j * length if shared else start
            cells = slice(column, column + len(question.tokens))
            token_ids[b, cells] = question.tokens
            positions[b, cells] = np.arange(start, start + len(question.tokens))
            segments[b, cells] = 2 + j if shared else 1
            stop = read + len(question.slots)
            slots[b, read:stop] = [column + slot for slot in question.slots]
            owners[b, read:stop] = question.query
            read = stop
    return Packed(token_ids, positions, segments, slots, owners)


@dataclass(frozen=True)
class Adjustment:
    """Changes to the log-odds themselves, both off by default.

    guidance  w > 0: u0 + (1 + w)(u - u0), where u0 is asked with the document masked (classifier-free guidance)
    prior     u - u_empty, where u_empty is asked with an empty document (a content-free prior)
    """

    guidance: float = 0.0
    prior: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.guidance < math.inf:
            raise BackboneError(f"guidance is a finite number, 0 (off) or more, got {self.guidance}.")
        if not isinstance(self.prior, bool):
            raise BackboneError(f"prior is true or false, got {self.prior!r}.")


class Prompter:
    """Turns queries into token ids, for one tokenizer and one pair of answers."""

    def __init__(
        self, spec: BackboneSpec, tokenizer: TextTokenizer, verbalizer: Verbalizer, *, chat: bool = False
    ) -> None:
        if chat and spec.chat is None:
            raise BackboneError(f"{spec.name} has no chat template; ask it with the raw prompt (chat=False).")
        before, between = spec.chat if chat and spec.chat else ("", "")
        self.tokenizer = tokenizer
        # In a chat the answer begins a turn, so there is no space before it.
        self.answers = tokenizer.answers(verbalizer, leading_space=spec.leading_space and not chat)
        self.mask = tokenizer.special(spec.mask)[0] if spec.mask_id is None else spec.mask_id
        self._turn = tokenizer.markup(between)
        self._begin = tokenizer.markup(before) if chat else tokenizer.special(*spec.begin)
        self._after_document = tokenizer.special(*spec.after_document)
        self._after_question = tokenizer.special(*spec.after_question)
        self.spec = replace(spec, begin=(), chat_tokens=len(self._begin) + len(self._turn)) if chat else spec

    def documents(self, queries: Sequence[Query], *, masked: bool = False) -> Documents:
        """Queries by document, all as tokens; equal texts are tokenised once. `masked` hides the documents."""
        groups: dict[tuple[str, str, str], list[int]] = {}
        for number, query in enumerate(queries):
            groups.setdefault((query.prefix, query.document, self._start(query.question)), []).append(number)
        questions: dict[tuple[int, Pieces], tuple[Tokens, tuple[int, ...]]] = {}
        documents: Documents = {}
        for (prefix, text, start), numbers in groups.items():
            body, taken = self._body(prefix, text, start, masked=masked)
            document = self._begin + body + self._after_document
            for number in numbers:
                pieces = queries[number].question
                if (taken, pieces) not in questions:
                    questions[taken, pieces] = self._question(pieces, taken)
                tokens, slots = questions[taken, pieces]
                self._check_length(number, len(document) + len(tokens))
                documents.setdefault(document, []).append(Question(number, tokens, slots))
        return documents

    def _start(self, pieces: Pieces) -> str:
        """White space and what follows it at the beginning of a question, unless a special token comes before it."""
        if self._after_document or not pieces or not isinstance(pieces[0], str):
            return ""
        found = re.match(r"\s+\S+", pieces[0])
        return found.group() if found else ""

    def _body(self, prefix: str, text: str, start: str, *, masked: bool) -> tuple[Tokens, int]:
        """The tokens of the prefix and the document, and how many characters of the question they take along.

        The paper's prompt is one text. A tokenizer may join the space before a document with its first word, or a full
        stop with the empty line after it; so all of it is tokenised where it stands, and only then parted.
        """
        whole = prefix + text
        if masked:
            ids, spans = self.tokenizer.ids(whole), self.tokenizer.spans(whole)
            kept = sum(end <= len(prefix) for _, end in spans)
            return ids[:kept] + (self.mask,) * (len(ids) - kept), 0
        space = len(start) - len(start.lstrip())
        joint = self.tokenizer.ids_up_to(whole + start, len(whole) + space) if space else None
        return (self.tokenizer.ids(whole), 0) if joint is None else (joint, space)

    def specials(self) -> dict[str, list[int]]:
        """The tokens beside those of texts: answers, mask, and what stands around document and question."""
        return {
            "answers": list(self.answers),
            "mask": [self.mask],
            "begin": list(self._begin),
            "turn": list(self._turn),
            "after_document": list(self._after_document),
            "after_question": list(self._after_question),
        }

    def _check_length(self, number: int, tokens: int) -> None:
        if tokens > self.spec.context:
            raise BackboneError(
                f"query {number} has {tokens} tokens, {self.spec.name} reads {self.spec.context}:"
                " shorten the document or the label."
            )

    def _question(self, pieces: Pieces, taken: int) -> tuple[Tokens, tuple[int, ...]]:
        """The question without the `taken` characters that went with the document."""
        tokens: list[int] = []
        slots: list[int] = []
        turn = self._turn  # the user's turn ends where the first answer begins
        for number, piece in enumerate(pieces):
            if isinstance(piece, str):
                tokens += self.tokenizer.ids(piece[taken:] if number == 0 else piece)
                continue
            tokens += turn
            turn = ()
            if piece.answer is None:
                slots.append(len(tokens))
                tokens.append(self.mask)
            else:
                tokens.append(self.answers[0 if piece.answer else 1])
        return (*tokens, *self._after_question), tuple(slots)


class AskingBackbone(ABC):
    """`log_odds` and `spans` of a backbone that only has to say how documents with questions are computed."""

    def __init__(self, prompter: Prompter, attention: Attention, adjustment: Adjustment | None = None) -> None:
        self.prompter, self.spec, self.attention = prompter, prompter.spec, attention
        self.adjustment = adjustment or Adjustment()
        self.spans: Callable[[str], list[tuple[int, int]]] = prompter.tokenizer.spans

    def __deepcopy__(self, memo: dict[int, object]) -> "AskingBackbone":
        return self  # nothing in it changes, and scikit-learn's `clone` copies every parameter

    @cached_property
    def identity(self) -> str:
        """A digest of everything that an answer depends on: the same model by name or by path has the same."""
        return hashlib.sha256(json.dumps(self.identity_parts(), sort_keys=True).encode()).hexdigest()

    def identity_parts(self) -> dict[str, Any]:
        """What the identity is made of, as JSON values."""
        return self.weights() | {
            "prompting": PROMPTING,
            "tokenizer": self.prompter.tokenizer.digest,
            "prompt": self.prompter.specials(),
            "attention": self.attention,
            "shift": self.spec.shift,
            "block": self.spec.block,
            "guidance": self.adjustment.guidance,
            "prior": self.adjustment.prior,
        }

    @abstractmethod
    def weights(self) -> dict[str, str]:
        """What tells the weights from others: `weights`, a SHA-256 of their files, and `dtype`, how they are kept."""

    def facts(self) -> dict[str, str]:
        """What `setscore models --check` prints: all of it was checked when the backbone was loaded."""
        spec, prompter = self.spec, self.prompter
        answers = [f"{prompter.tokenizer.token(number)!r} ({number})" for number in prompter.answers]
        return {
            "backbone": f"{spec.name}, {spec.family}, licence {spec.licence}",
            "attention": f"{self.attention} (offers {', '.join(spec.attention)})",
            "context": f"{spec.context} tokens",
            "mask": f"{prompter.tokenizer.token(prompter.mask)!r} ({prompter.mask})",
            "answers": f"{answers[0]} and {answers[1]}, one token each",
            "read": f"{spec.shift} before the slot" if spec.shift else "at the slot",
            "blocks": f"of {spec.block} tokens, block-causal" if spec.block else "none, bidirectional",
        }

    def log_odds(self, queries: Sequence[Query]) -> list[FloatArray]:
        """Equal queries are asked once: it is cheaper, and their answers do not differ by a rounding error."""
        found = self._guided(queries)
        if not self.adjustment.prior:
            return found
        empty = self._guided([replace(query, document="") for query in queries])
        return [value - prior for value, prior in zip(found, empty, strict=True)]

    def _guided(self, queries: Sequence[Query]) -> list[FloatArray]:
        found = self._asked(queries)
        if not self.adjustment.guidance:
            return found
        hidden = self._asked(queries, masked=True)
        scale = 1 + self.adjustment.guidance
        return [free + scale * (value - free) for value, free in zip(found, hidden, strict=True)]

    def _asked(
        self, queries: Sequence[Query], *, masked: bool = False, values: Values | None = None
    ) -> list[FloatArray]:
        numbers = {query: number for number, query in enumerate(dict.fromkeys(queries))}
        answers = [np.empty(query.open_slots) for query in numbers]
        filled = [0] * len(numbers)
        for owner, value in (values or self.values)(self.prompter.documents(list(numbers), masked=masked)):
            answers[owner][filled[owner]] = value
            filled[owner] += 1
        results = [answers[numbers[query]].copy() for query in queries]
        bad = [number for number, values in enumerate(results) if not np.isfinite(values).all()]
        if bad:
            message = f"{self.spec.name} gave NaN or infinity for {len(bad)} queries, the first is number {bad[0]}."
            raise ScoreError(message, tuple(bad))
        return results

    @abstractmethod
    def values(self, documents: Documents) -> Iterator[tuple[int, float]]:
        """The query's number and the log-odds of every slot, a query's slots in their order."""
