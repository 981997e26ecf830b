"""Text to token ids, such that text never becomes a special token."""

from pathlib import Path

from tokenizers import Tokenizer

from setscore.errors import BackboneError, VerbalizerError
from setscore.prompts import Verbalizer


class TextTokenizer:
    """A tokenizer that reads `[MASK]` or `[SEP]` in a text as the characters they are."""

    def __init__(self, path: Path) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises bare Exception for a missing or broken file
            raise BackboneError(f"the tokenizer {path.name} cannot be read: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True

    def ids(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def spans(self, text: str) -> list[tuple[int, int]]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).offsets)

    def special(self, *names: str) -> tuple[int, ...]:
        """Ids of special tokens by name."""
        ids = []
        for name in names:
            token = self._tokenizer.token_to_id(name)
            if token is None:
                raise BackboneError(f"the tokenizer has no token {name!r}")
            ids.append(token)
        return tuple(ids)

    def answers(self, verbalizer: Verbalizer, *, leading_space: bool) -> tuple[int, int]:
        """Token ids of yes and no, one each, or an error that shows how they split."""
        ids: list[int] = []
        for word in (verbalizer.yes, verbalizer.no):
            text = f" {word}" if leading_space else word
            encoded = self._tokenizer.encode(text, add_special_tokens=False)
            if len(encoded.ids) != 1 or encoded.ids[0] == self._tokenizer.token_to_id("[UNK]"):
                raise VerbalizerError(
                    f"the answer {text!r} must be one token, but splits into {encoded.tokens}."
                    " Choose another verbalizer, for example 'yes/no'."
                )
            ids.append(encoded.ids[0])
        if ids[0] == ids[1]:
            raise VerbalizerError(f"both answers of {verbalizer} are the same token, so they cannot be compared.")
        return ids[0], ids[1]
