"""Text to token ids, such that text never becomes a special token."""

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Encoding, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from setscore.backbones.config import Config
from setscore.errors import BackboneError, VerbalizerError
from setscore.prompts import Verbalizer
from setscore.storage import megabytes, one_line

MOST_BYTES = 256 * 2**20  # of a file; the largest public vocabularies take a tenth of it

CHARACTERS_OF_A_TOKEN = 8  # of a beginning that is likely to be enough
UNSURE = 256  # characters before a cut whose tokens may be others in the whole text
MOST_CHARACTERS = 2**20

Span = tuple[int, int]  # characters from start up to end


class TextTokenizer:
    """A tokenizer that reads `[MASK]` or `[SEP]` in a text as the characters they are."""

    def __init__(self, source: Path | Tokenizer) -> None:
        """From a tokenizer.json, a checkpoint's folder, or a tokenizer."""
        self._tokenizer = _read(source) if isinstance(source, Path) else source
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True
        added = self._tokenizer.get_added_tokens_decoder()
        self._added = {number: token.content for number, token in added.items()}
        self._special = frozenset(number for number, token in added.items() if token.special)

    def ids(self, text: str) -> tuple[int, ...]:
        return tuple(number for number, _ in self._encoded(text))

    def first_ids(self, text: str, count: int) -> tuple[int, ...]:
        """The first `count` ids of a text, of which no more is read than they need.

        What lies behind a beginning can change the tokens near its end alone: those are not taken. A text whose first
        million characters hold fewer tokens, because they are blank or one endless word, is cut there.
        """
        size = CHARACTERS_OF_A_TOKEN * count + UNSURE
        while size < min(len(text), MOST_CHARACTERS):
            sure = [number for number, (_, end) in self._encoded(text[:size]) if end <= size - UNSURE]
            if len(sure) >= count:
                return tuple(sure[:count])
            size *= 2
        return self.ids(text[:MOST_CHARACTERS])[:count]

    def _encoded(self, text: str) -> list[tuple[int, Span]]:
        """Tokens and the characters that each covers.

        The vocabulary of SentencePiece has its special tokens among all others, so a text that spells one is parted
        inside it, and the parts are read each for itself.
        """
        found: list[tuple[int, Span]] = []
        waiting = [(0, text)]  # the next part last, and where it begins
        while waiting:
            offset, part = waiting.pop()
            encoded = self._encode(part)
            tokens = list(zip(encoded.ids, encoded.offsets, strict=True))
            cuts = [start + 1 for number, (start, end) in tokens if self._spells(number, part[start:end])]
            if cuts:
                parts = pairwise([0, *cuts, len(part)])
                waiting += [(offset + start, part[start:end]) for start, end in reversed(list(parts))]
            else:
                found += [(number, (start + offset, end + offset)) for number, (start, end) in tokens]
        return found

    def _encode(self, text: str) -> Encoding:
        try:
            return self._tokenizer.encode(text, add_special_tokens=False)
        except Exception as error:  # tokenizers raises bare Exception, as where a vocabulary lacks its unknown token
            raise BackboneError(f"the tokenizer cannot read {text[:40]!r}: {one_line(error)}.") from error

    def _spells(self, number: int, characters: str) -> bool:
        return len(characters) > 1 and self._added.get(number) == characters

    def ids_up_to(self, text: str, cut: int) -> tuple[int, ...] | None:
        """Ids of text[:cut] as they are within the whole text; None when the text cannot be parted there.

        It can when the tokens after the cut are those of text[cut:] alone: none reaches over it, and none begins with
        a space that SentencePiece would add again.
        """
        encoded = self._encoded(text)
        count = next((place for place, (_, (_, end)) in enumerate(encoded) if end > cut), len(encoded))
        ids = tuple(number for number, _ in encoded)
        return ids[:count] if ids[count:] == self.ids(text[cut:]) else None

    def spans(self, text: str) -> list[Span]:
        return [span for _, span in self._encoded(text)]

    def _says_nothing(self, number: int) -> bool:
        """Whether a token stands for what the vocabulary lacks; Unigram does not tell its name, but it has no text."""
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        return self.token(number) == unknown or not self.text([number]).strip()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the whole tokenizer as it is used here."""
        return hashlib.sha256(self._tokenizer.to_str().encode()).hexdigest()

    @property
    def size(self) -> int:
        """How many tokens there are."""
        size: int = self._tokenizer.get_vocab_size()
        return size

    def token(self, number: int) -> str | None:
        """A token as the vocabulary spells it; None for a number it does not have."""
        spelt: str | None = self._tokenizer.id_to_token(number)
        return spelt

    def text(self, ids: Sequence[int]) -> str:
        """Tokens as text; special ones, such as padding, are left out."""
        spelt: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return spelt

    def find(self, name: str) -> int | None:
        """The number of a token as the vocabulary spells it; None where there is none."""
        number: int | None = self._tokenizer.token_to_id(name)
        return number

    def is_text(self, number: int) -> bool:
        """Whether a text can become this token."""
        return self.token(number) is not None and number not in self._special

    def last_text_token(self) -> int:
        """The largest number that a text can become."""
        return max(set(self._tokenizer.get_vocab().values()) - self._special, default=0)

    def special(self, *names: str) -> tuple[int, ...]:
        """Ids of special tokens by name."""
        ids = []
        for name in names:
            token = self.find(name)
            if token is None:
                raise BackboneError(f"the tokenizer has no token {name!r}.")
            ids.append(token)
        return tuple(ids)

    def markup(self, text: str) -> tuple[int, ...]:
        """Ids of a template of our own, in which <...> names a special token."""
        ids: list[int] = []
        for part in re.split(r"(<[^<>\s]+>)", text):
            ids += self.special(part) if part.startswith("<") else self.ids(part)
        return tuple(ids)

    def answers(self, verbalizer: Verbalizer, *, leading_space: bool) -> tuple[int, int]:
        """Token ids of yes and no, one each, or an error that shows how they split."""
        ids: list[int] = []
        for word in (verbalizer.yes, verbalizer.no):
            text = f" {word}" if leading_space else word
            encoded = self._encode(text)
            if len(encoded.ids) != 1 or self._says_nothing(encoded.ids[0]):
                raise VerbalizerError(
                    f"the answer {text!r} must be one token, but splits into {encoded.tokens}."
                    " Choose another verbalizer, for example 'yes/no'."
                )
            ids.append(encoded.ids[0])
        if ids[0] == ids[1]:
            raise VerbalizerError(f"both answers of {verbalizer} are the same token, so they cannot be compared.")
        return ids[0], ids[1]


# How Qwen2, and with it Dream, cuts a text before byte-level BPE (Qwen2's published tokenizer.json).
_QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _read(path: Path) -> Tokenizer:
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file() and (path / "merges.txt").is_file():
        return _from_merges(path)
    tokenizer: Tokenizer = _opened(Tokenizer.from_file, file)
    return tokenizer


def _opened(reader: Callable[..., Any], *files: Path) -> Any:
    """What the library makes of files; it parses them itself, and stops at 128 levels."""
    for file in files:
        check_bytes(file)
    try:
        return reader(*map(str, files))
    except Exception as error:  # tokenizers raises bare Exception for a broken file
        raise _unreadable(" and ".join(map(str, files)), one_line(error)) from error


def check_bytes(file: Path) -> None:
    """An error for a file that is not there, or too large for a vocabulary."""
    try:
        size = file.stat().st_size
    except OSError as error:
        raise _unreadable(str(file), error.strerror) from error
    if size > MOST_BYTES:
        raise _unreadable(str(file), f"it is larger than {megabytes(MOST_BYTES)}, the limit")


def _unreadable(names: str, why: str | None) -> BackboneError:
    return BackboneError(f"the tokenizer {names} cannot be read: {why}. Get the file again.")


def _from_merges(folder: Path) -> Tokenizer:
    """The tokenizer of a folder with vocab.json and merges.txt only, as Dream ships it."""
    tokenizer = Tokenizer(_opened(models.BPE.from_file, folder / "vocab.json", folder / "merges.txt"))
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(_QWEN_WORDS), behavior="isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_])
    tokenizer.decoder = decoders.ByteLevel()
    for number, content in _added_tokens(Config.read(folder / "tokenizer_config.json", "tokenizer")):
        tokenizer.add_special_tokens([AddedToken(content, normalized=False)])
        if tokenizer.token_to_id(content) != number:
            raise BackboneError(f"the added token {content!r} should be token {number}; get the files again.")
    return tokenizer


def _added_tokens(settings: Config) -> list[tuple[int, str]]:
    """Numbers and texts of the tokens beyond the vocabulary, in order."""
    added = settings.section("added_tokens_decoder")
    for number in added:
        content = added.section(number).get("content")
        if not (number.isascii() and number.isdigit()) or not isinstance(content, str):
            raise added.wrong(number, "the number of a token, with its content as a text")
    return sorted((int(number), added[number]["content"]) for number in added)
