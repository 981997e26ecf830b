"""Whether a tokenizer, the settings and the weights of a checkpoint speak of the same tokens."""

from setscore.backbones.asking import Prompter
from setscore.backbones.base import BackboneSpec
from setscore.backbones.tokens import TextTokenizer
from setscore.errors import BackboneError


def check_texts(tokenizer: TextTokenizer, rows: int, where: str) -> None:
    """Every token that a text can become must have one of the embedding's `rows`."""
    number = tokenizer.last_text_token()
    if number >= rows:
        raise BackboneError(
            f"the tokenizer of {where} has the token {tokenizer.token(number)!r} with the number {number}, and the"
            f" weights have tokens 0 to {rows - 1}. Take both from one checkpoint."
        )


def check_prompt(prompter: Prompter, rows: int, where: str) -> None:
    """And so must the special tokens of a prompt."""
    for name, numbers in prompter.specials().items():
        for number in numbers:
            if number >= rows:
                raise BackboneError(
                    f"the prompt of {where} has the token {prompter.tokenizer.token(number)!r} ({name}) with the number"
                    f" {number}, and the weights have tokens 0 to {rows - 1}. Take both from one checkpoint."
                )


def check_mask(tokenizer: TextTokenizer, spec: BackboneSpec, rows: int, where: str) -> None:
    """The mask that the settings `where` name must be the tokenizer's: with another token every answer would be noise.

    Families call their mask by a name. A tokenizer that does not have it may call it otherwise, but never by a word.
    """
    named, said = tokenizer.find(spec.mask), spec.mask_id
    if said is None and named is None:
        raise BackboneError(
            f"{where} has no mask_token_id, and its tokenizer no token {spec.mask!r}. Write the number of the mask"
            " there as mask_token_id."
        )
    if said is None:
        return
    if not 0 <= said < rows:
        raise BackboneError(
            f"{where}: mask_token_id is one of the tokens 0 to {rows - 1} that the weights have, got {said}."
        )
    if named is not None and said != named:
        raise BackboneError(
            f"{where}: mask_token_id is {named}, the token {spec.mask!r} of its tokenizer, got {said},"
            f" which is {tokenizer.token(said)!r}."
        )
    if named is None and tokenizer.is_text(said):
        raise BackboneError(
            f"{where}: mask_token_id is a special token of its tokenizer, got {said}, which is the text"
            f" {tokenizer.token(said)!r}."
        )
