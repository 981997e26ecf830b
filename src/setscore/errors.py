"""Errors that explain themselves: what was got, what is allowed, what to do."""

import difflib
import heapq
import reprlib
from collections.abc import Iterable, Sequence

NAMED = 50  # names that a message lists
COMPARED = 200  # names that are compared with one that is unknown
LONG = 200  # characters of a name above which none is near it


class SetScoreError(ValueError):
    """A mistake that the caller can mend. The command line prints it without a traceback."""


class TemplateError(SetScoreError):
    """The wording of a question cannot be used."""


class VerbalizerError(SetScoreError):
    """The answers are not one token each for the backbone at hand."""


class LabelError(SetScoreError, AttributeError):
    """The label inventory cannot be used.

    An AttributeError too, like scikit-learn's NotFittedError: without labels a classifier has no `classes_`, and both
    `hasattr` and the notebook view of scikit-learn ask for it.
    """


class DocumentError(SetScoreError):
    """Some documents cannot be scored. `problems` maps the row (counted from 0) to what is wrong with it."""

    def __init__(self, problems: dict[int, str], total: int) -> None:
        self.problems = problems
        shown = "; ".join(f"document {row}: {problem}" for row, problem in list(problems.items())[:5])
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        super().__init__(
            f"{len(problems)} of {counted(total, 'document')} cannot be scored: {shown}{more}. Rows count from 0."
        )


class DataFileError(SetScoreError):
    """A file is missing, broken or not laid out as expected."""


class BackboneError(SetScoreError):
    """A backbone cannot be loaded, or cannot answer what it was asked."""


class ScoreError(SetScoreError):
    """A backbone answered with something that is not a number. `queries` are the indices of those queries."""

    def __init__(self, message: str, queries: tuple[int, ...] = ()) -> None:
        self.queries = queries
        super().__init__(message)


class MissingExtraError(SetScoreError, ImportError):
    """An optional part is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        command = f"pip install 'dllm-setscore[{extra}]', in a clone '.[{extra}]'"
        super().__init__(f"{what} needs the extra {extra!r}: {command}.")


class TruncationWarning(UserWarning):
    """Some documents were longer than the backbone reads; only their beginning was scored."""

    @classmethod
    def of(cls, truncated: int, total: int) -> "TruncationWarning":
        return cls(f"{truncation(truncated, total)} long_documents='chunk' reads them whole.")


class FewDocumentsWarning(UserWarning):
    """A calibration was fitted on so few documents that it may do more harm than good."""


class IdentityWarning(UserWarning):
    """A classifier was fitted on the answers of another model than the one it has now."""

    @classmethod
    def of(cls, backbone: str) -> "IdentityWarning":
        return cls(
            f"this classifier was fitted on other weights or settings than {backbone} has now, so its thresholds may"
            " not fit. Fit it again on labelled documents."
        )


class LabelWarning(UserWarning):
    """Labels that are probably the same, because only capitals or spaces tell them apart."""


def plural(number: int, one: str, many: str = "") -> str:
    """The word that goes with a number: `one` with 1, else `many`, which is `one` with an s unless it is given."""
    return one if number == 1 else many or f"{one}s"


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 document", "2 documents"."""
    return f"{number} {plural(number, noun)}"


def truncation(cut: int, total: int) -> str:
    """How many documents were cut, as a sentence; what to do about it is the caller's to add."""
    return f"{cut} of {counted(total, 'document')} {plural(cut, 'was', 'were')} truncated: only the beginning was read."


def brief(value: object, most: int = 80) -> str:
    """A value as a message quotes it: `repr`, cut in the middle where it is long, whatever is inside the value."""
    short = reprlib.Repr()
    short.maxlevel, short.maxlist, short.maxdict, short.maxstring, short.maxother = 2, 20, 20, most, most
    try:
        text = short.repr(value)
    except ValueError:  # Python refuses to spell out whole numbers of thousands of digits
        text = f"{type(value).__name__} with too many digits to show"
    return text if len(text) <= 4 * most else f"{text[: 4 * most]}…"


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that is not in a registry or an inventory, with the nearest one that is."""
    names = list(known)
    near = nearest(name, names)
    hint = f" Did you mean {near!r}?" if near else ""
    return f"unknown {kind} {brief(name)}.{hint} {known_names(names)}"


def known_names(names: Sequence[str]) -> str:
    """Which names there are, as a sentence."""
    more = f", … ({len(names)} in all)" if len(names) > NAMED else ""
    return f"Known: {', '.join(sorted(names)[:NAMED])}{more}."


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The name that looks most like it. Of many, only those that begin and end most alike are compared in full.

    Comparing takes a tenth of a millisecond, and an inventory has thousands of labels, asked again for each row.
    """
    if len(name) > LONG:
        return None
    if len(names) > COMPARED:

        def differing(other: str) -> int:
            return max(len(name), len(other)) - _common(name, other) - _common(name[::-1], other[::-1])

        names = heapq.nsmallest(COMPARED, names, key=differing)
    return next(iter(difflib.get_close_matches(name, names, n=1)), None)


def _common(one: str, other: str) -> int:
    """Characters that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))
