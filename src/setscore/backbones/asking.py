"""What backbones with a tokenizer share: queries as tokens, each asked once, answers in the order asked."""

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
from setscore.backbones.packing import Documents, Question, Tokens
from setscore.backbones.tokens import TextTokenizer
from setscore.errors import BackboneError, ScoreError
from setscore.prompts import Verbalizer
from setscore.records import FloatArray, Query, Slot

PROMPTING = 1  # how this module makes tokens of queries; whoever changes that counts on, so that no old answer is taken
Pieces = tuple[str | Slot, ...]


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

    def _asked(self, queries: Sequence[Query], *, masked: bool = False) -> list[FloatArray]:
        numbers = {query: number for number, query in enumerate(dict.fromkeys(queries))}
        answers = [np.empty(query.open_slots) for query in numbers]
        filled = [0] * len(numbers)
        for owner, value in self.values(self.prompter.documents(list(numbers), masked=masked)):
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
