"""Converted rows as arrays of token ids: one file, quick to load, shared by the processes that make batches."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

PLACE = 1  # [unused0]: where the label goes in a question wording
Ints = npt.NDArray[Any]


@dataclass(frozen=True)
class Ragged:
    """Lists of different length: list i is values[offsets[i] : offsets[i + 1]]."""

    values: Ints
    offsets: Ints

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]], dtype: type = np.int32) -> "Ragged":
        kept = [np.asarray(x, dtype=dtype) for x in lists]
        offsets = np.concatenate([[0], np.cumsum([len(x) for x in kept], dtype=np.int64)]).astype(np.int64)
        return cls(np.concatenate(kept) if kept else np.zeros(0, dtype=dtype), offsets)

    def __getitem__(self, index: int) -> Ints:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class Store:
    """Everything training reads. Numbers refer to each other: a row to its document, a label to its wordings."""

    documents: Ragged  # tokens
    texts: Ragged  # tokens of every wording, question and answer
    labels: Ragged  # text numbers: the wordings of a label
    row_document: Ints
    row_source: Ints
    row_family: Ints
    row_answer: Ints  # text number, or -1
    row_twin: Ints  # row number, or -1
    row_yes: Ragged  # label numbers
    row_no: Ragged  # label numbers
    row_asks: Ragged  # text numbers, in pairs with 0 / 1
    row_questions: Ragged  # text numbers of wordings with PLACE
    family_questions: Ragged  # the same, by family
    pool: Ints  # text numbers of phrases that could be labels
    topics: Ints  # [] how many of them, at the end, are topics of topics.yaml
    sources: tuple[str, ...]

    def save(self, path: Path) -> None:
        arrays: dict[str, Ints] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Ragged):
                arrays |= {f"{field.name}.values": value.values, f"{field.name}.offsets": value.offsets}
            elif field.name == "sources":
                arrays[field.name] = np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
            else:
                arrays[field.name] = value
        with path.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path) -> "Store":
        with np.load(path, allow_pickle=False) as saved:
            parts: dict[str, Any] = {}
            for field in fields(cls):
                if field.name == "sources":
                    parts[field.name] = tuple(json.loads(saved[field.name].tobytes()))
                elif field.name in saved:
                    parts[field.name] = saved[field.name]
                else:
                    parts[field.name] = Ragged(saved[f"{field.name}.values"], saved[f"{field.name}.offsets"])
        return cls(**parts)


class Texts:
    """Numbers for texts, each kept once; tokenised together at the end."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def tokens(self, tokenizer: Tokenizer, longest: int) -> Ragged:
        """Token ids; `{label}` becomes PLACE, and a text keeps its last `longest` tokens."""
        left = tokenize(tokenizer, [text.partition("{label}")[0] for text in self.numbers])
        right = tokenize(tokenizer, [text.partition("{label}")[2] for text in self.numbers])
        middle = [[PLACE] if "{label}" in text else [] for text in self.numbers]
        return Ragged.of([(a + b + c)[-longest:] for a, b, c in zip(left, middle, right, strict=True)], np.uint16)


def tokenize(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Token ids; a special token written in a text is text, as in the package."""
    tokenizer.encode_special_tokens = True
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return [encoding.ids for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
