"""The words of a prompt as token ids, and how a list of labels is written with them."""

from dataclasses import dataclass

from tokenizers import Tokenizer

from recipes.store import tokenize

LIST = "Decide whether each candidate label applies. Use one token per label, in order. Document:"
INLINE = "Decide whether each candidate label applies. Document:"


@dataclass(frozen=True)
class Vocabulary:
    """The token ids that the layouts need."""

    begin: int
    end: int
    mask: int
    yes: int
    no: int
    document: list[int]
    list_prefix: list[int]
    inline_prefix: list[int]
    labels: list[int]
    dash: list[int]
    answers: list[int]
    separator: list[int]
    answer: list[int]
    colon: list[int]
    either: list[int]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Vocabulary":
        special = [tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]", "[MASK]", "yes", "no")]
        written = ["Document:", LIST, INLINE, "Labels:", "-", "Answers:", ";", "Answer:", ":", "or"]
        return cls(*special, *tokenize(tokenizer, written))

    def listed(self, labels: list[list[int]], answers: list[int], *, inline: bool) -> tuple[list[int], list[int]]:
        """The tokens of a list of labels and where in them the answers stand: behind each label, or all at the end."""
        tokens, places = list(self.labels), list[int]()

        def write(answer: int) -> None:
            places.append(len(tokens))
            tokens.append(answer)

        for label, answer in zip(labels, answers, strict=True):
            tokens.extend([*self.dash, *label])
            if inline:
                tokens.extend(self.colon)
                write(answer)
        for number, answer in enumerate([] if inline else answers):
            tokens.extend(self.separator if number else self.answers)
            write(answer)
        return tokens, places
