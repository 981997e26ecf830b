"""Text to token ids, such that text never becomes a special token."""

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from setscore.errors import BackboneError, VerbalizerError
from setscore.prompts import Verbalizer

Span = tuple[int, int]  # characters from start up to end


class TextTokenizer:
    """A tokenizer that reads `[MASK]` or `[SEP]` in a text as the characters they are."""

    def __init__(self, source: Path | Tokenizer) -> None:
        """From a tokenizer.json, a checkpoint's folder, or a tokenizer."""
        self._tokenizer = _read(source) if isinstance(source, Path) else source
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True
        self._added = {number: token.content for number, token in self._tokenizer.get_added_tokens_decoder().items()}

    def ids(self, text: str) -> tuple[int, ...]:
        return tuple(number for number, _ in self._encoded(text))

    def _encoded(self, text: str) -> list[tuple[int, Span]]:
        """Tokens and the characters that each covers.

        The vocabulary of SentencePiece has its special tokens among all others, so a text that spells one is parted
        inside it, and the parts are read each for itself.
        """
        found: list[tuple[int, Span]] = []
        waiting = [(0, text)]  # the next part last, and where it begins
        while waiting:
            offset, part = waiting.pop()
            encoded = self._tokenizer.encode(part, add_special_tokens=False)
            tokens = list(zip(encoded.ids, encoded.offsets, strict=True))
            cuts = [start + 1 for number, (start, end) in tokens if self._spells(number, part[start:end])]
            if cuts:
                parts = pairwise([0, *cuts, len(part)])
                waiting += [(offset + start, part[start:end]) for start, end in reversed(list(parts))]
            else:
                found += [(number, (start + offset, end + offset)) for number, (start, end) in tokens]
        return found

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

    def special(self, *names: str) -> tuple[int, ...]:
        """Ids of special tokens by name."""
        ids = []
        for name in names:
            token = self._tokenizer.token_to_id(name)
            if token is None:
                raise BackboneError(f"the tokenizer has no token {name!r}")
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
            encoded = self._tokenizer.encode(text, add_special_tokens=False)
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
    try:
        if path.is_dir() and not file.is_file() and (path / "merges.txt").is_file():
            return _from_merges(path)
        return Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises bare Exception for a missing or broken file
        raise BackboneError(f"the tokenizer {file.name} cannot be read: {error}") from error


def _from_merges(folder: Path) -> Tokenizer:
    """The tokenizer of a folder with vocab.json and merges.txt only, as Dream ships it."""
    tokenizer = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(_QWEN_WORDS), behavior="isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_])
    tokenizer.decoder = decoders.ByteLevel()
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    added = sorted(settings["added_tokens_decoder"].items(), key=lambda entry: int(entry[0]))
    for number, entry in added:
        tokenizer.add_special_tokens([AddedToken(entry["content"], normalized=False)])
        if tokenizer.token_to_id(entry["content"]) != int(number):
            raise BackboneError(f"the added token {entry['content']!r} should be token {number}; get the files again.")
    return tokenizer
