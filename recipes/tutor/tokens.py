"""What the tutor learns and what it may be asked, as its tokens: `recipes.prepare --tutor FOLDER` wrote the texts.

    python -m recipes.tutor.tokens --gguf model.gguf --folder tutor/ --validation validation.json

Writes tokens.npz, which holds all that the stages behind it need: what is learned, what is measured with --validation,
and the pool of documents and labels; and tokenizer.json.
"""

import argparse
import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from recipes.files import json_lines
from recipes.sources.written import worded
from recipes.store import Ints, Ragged
from recipes.tutor.pool import Pool
from setscore.prompts import Template

POOL = ("documents", "labels")
# The package's own prompt, cut where it cuts it: the empty line goes with the document
PREFIX, QUESTION = Template.of("express").text.split("{document}")
GAP = QUESTION[: len(QUESTION) - len(QUESTION.lstrip())]
LONGEST = 380  # tokens of a document
# How Qwen2 cuts texts into words
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
Asked = tuple[str, Sequence[tuple[str, float]]]  # a text, and labels with their answers (nan where there is none)


@dataclass(frozen=True)
class Questions:
    """Examples: a document, and questions about it with their answers."""

    texts: Ragged  # tokens of every document and question
    document: Ints  # [E] text number
    questions: Ragged  # [E] text numbers
    answers: Ints  # of every question of every example

    def arrays(self, name: str) -> dict[str, Ints]:
        return {
            f"{name}.texts": self.texts.values,
            f"{name}.text_offsets": self.texts.offsets,
            f"{name}.document": self.document,
            f"{name}.questions": self.questions.values,
            f"{name}.question_offsets": self.questions.offsets,
            f"{name}.answers": self.answers,
        }

    @classmethod
    def load(cls, path: Path, name: str) -> "Questions":
        with np.load(path, allow_pickle=False) as saved:
            texts, questions = (
                Ragged(saved[f"{name}.{kind}s"], saved[f"{name}.{kind}_offsets"]) for kind in ("text", "question")
            )
            return cls(texts, saved[f"{name}.document"], questions, saved[f"{name}.answers"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="what recipes.prepare --tutor wrote")
    parser.add_argument("--validation", type=Path, help="what the tutor is measured on, of recipes.validate")
    parser.add_argument("--seed", type=int, default=13)
    arguments = parser.parse_args()
    tokenizer, folder = tokenizer_of(arguments.gguf), arguments.folder
    generator = random.Random(arguments.seed)
    by_hand = json_lines(folder / "learn.jsonl.xz", ("text", "yes", "no"))
    found = {"learn": tokenized(tokenizer, (learned(row, generator) for row in by_hand))}
    if arguments.validation:
        found["measure"] = tokenized(tokenizer, measured(json.loads(arguments.validation.read_text())))
    documents, labels = ([row["text"] for row in json_lines(folder / f"{name}.jsonl.xz", ("text",))] for name in POOL)
    # every document and label of the pool once; which are asked together, recipes.tutor.near says
    texts = [*map(document, documents), *map(question, labels)]
    nothing = Ragged.of([])
    found["pool"] = Questions(tokens(tokenizer, texts), np.arange(len(documents)), nothing, np.zeros(0))
    arrays = Pool.load(folder / "pool.npz").arrays()
    for name, each in found.items():
        arrays |= each.arrays(name)
        print(f"{name}: {len(each.document)} texts, {len(each.answers)} questions, {length(each) / 1e6:.1f} M tokens")
    with (folder / "tokens.npz").open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)
    tokenizer.save(str(folder / "tokenizer.json"))


def learned(row: Mapping[str, Any], generator: random.Random) -> Asked:
    """A judged or written row, each label in one of its wordings: half of the time by name and description."""

    def drawn(label: Sequence[str]) -> str:
        return label[-1] if generator.random() < 0.5 else generator.choice(label)

    found = [(drawn(label), float(side == "yes")) for side in ("yes", "no") for label in row[side]]
    generator.shuffle(found)
    return row["text"], found


def measured(sets: Mapping[str, Any]) -> Iterator[Asked]:
    """All labels of every document, in the order in which recipes.tutor.learn reads the answers."""
    for each in sets.values():
        if "rows" in each:
            for row in each["rows"]:
                yield unanswered(row["text"], wordings(row))
        else:
            yield from (unanswered(text, each["labels"]) for text in each["documents"])


def unanswered(text: str, labels: Iterable[str]) -> Asked:
    return text, [(label, math.nan) for label in labels]


def wordings(row: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(word for label in (*row["yes"], *row["no"]) for word in worded(label)))


def tokenized(tokenizer: Tokenizer, rows: Iterable[Asked]) -> Questions:
    """Each text once, however often it is read."""
    numbers = dict[str, int]()
    documents, questions, answers = list[int](), list[list[int]](), list[float]()

    def number(text: str) -> int:
        return numbers.setdefault(text, len(numbers))

    for text, labels in rows:
        documents.append(number(document(text)))
        questions.append([number(question(label)) for label, _ in labels])
        answers += [answer for _, answer in labels]
    read = np.array(documents, dtype=np.int32)
    return Questions(tokens(tokenizer, list(numbers)), read, Ragged.of(questions), np.array(answers, dtype=np.float16))


def document(text: str) -> str:
    return f"{PREFIX}{text}{GAP}"


def question(label: str) -> str:
    return QUESTION.strip().replace("{label}", label)


def tokens(tokenizer: Tokenizer, texts: list[str]) -> Ragged:
    """A text that is cut keeps its last token: the empty line, where the question begins."""
    found = (each.ids for each in tokenizer.encode_batch_fast(texts, add_special_tokens=False))
    return Ragged.of([ids if len(ids) <= LONGEST else [*ids[: LONGEST - 1], ids[-1]] for ids in found], np.uint32)


def length(asked: Questions) -> int:
    """Tokens of all texts and questions, each document once."""
    sizes = np.diff(asked.texts.offsets)
    return int(sizes[asked.document].sum() + sizes[asked.questions.values].sum())


def tokenizer_of(path: Path) -> Tokenizer:
    """The tokenizer that a GGUF file of a Qwen2 model holds. Text never becomes a special token."""
    import gguf

    fields = gguf.GGUFReader(str(path)).fields
    if (kind := fields["tokenizer.ggml.pre"].contents()) != "qwen2":
        raise SystemExit(f"{path} cuts texts into words as {kind} does; only qwen2 can be read.")
    words = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(pair.split(" ", 1)) for pair in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, merges))
    tokenizer.normalizer = normalizers.NFC()
    cut = pre_tokenizers.Split(Regex(WORDS), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    special = [word for word in words if word.startswith("<|") and word.endswith("|>")]
    tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in special])
    tokenizer.encode_special_tokens = True
    return tokenizer


if __name__ == "__main__":
    main()
