"""What is wrong with a request, in words: which field, and what is allowed there. What was sent is not repeated."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic_core import PydanticCustomError

from setscore.errors import brief, plural, unknown_name

TOLD = 5  # mistakes that one answer names
BLANK = r"[^\s\x00-\x1f\x7f-\x9f]"  # what a text that is not blank holds
NAME = r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$"
HYPOTHESIS = r"^[^{}\x00-\x1f]*\{\}[^{}\x00-\x1f]*$"
IDENTIFIER = r"^[0-9a-f]{12}$"
PATTERNS = {
    BLANK: "must not be blank",
    NAME: "must be neither blank nor with blanks around it, and on one line",
    HYPOTHESIS: "must hold {} once, where the label goes, and no other brace",
    IDENTIFIER: "must be twelve of the signs 0-9 and a-f, as /projects lists them",
}
TYPES = {
    "string": "a text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "list": "a list",
    "dict": "an object",
    "model_attributes": "an object",
}
OWN = "setscore"  # the type of mistakes that our own checks tell in words
WORDS: dict[
    str, Callable[[Mapping[str, Any]], str]
] = {  # by pydantic's type of mistake, with the limits that it states
    OWN: lambda limits: str(limits["told"]),
    "missing": lambda _: "is missing",
    "too_short": lambda limits: f"must hold at least {_entries(limits['min_length'])}",
    "too_long": lambda limits: f"must hold at most {_entries(limits['max_length'])}",
    "string_too_long": lambda limits: f"must have at most {limits['max_length']} characters",
    "greater_than_equal": lambda limits: f"must be at least {limits['ge']:g}",
    "less_than_equal": lambda limits: f"must be at most {limits['le']:g}",
    "literal_error": lambda limits: f"must be one of {limits['expected'].replace(' or ', ', ')}",
    "string_pattern_mismatch": lambda limits: PATTERNS[limits["pattern"]],
}


def mistake(told: str) -> PydanticCustomError:
    """One that a check of ours finds; `told` follows the name of the field."""
    return PydanticCustomError(OWN, "{told}", {"told": told})


def unknown_field(name: str, known: Sequence[str]) -> PydanticCustomError:
    return mistake(f"has an {unknown_name('field', name, known)}".removesuffix("."))


def told(errors: Sequence[Mapping[str, Any]], body: Any) -> str:
    """The first mistakes, a sentence each."""
    by_place: dict[tuple[str | int, ...], list[str]] = {}
    for error in errors:
        place = _place(error, body)
        words = _words(error, place)
        if words not in by_place.setdefault(place, []):
            by_place[place].append(words)
    inner = {place[:length] for place in by_place for length in range(len(place))}
    kept = {place: _telling(words, inside=place in inner) for place, words in by_place.items()}
    sentences = [f"{_named(place)} {_joined(words)}." for place, words in kept.items() if words]
    return " ".join(sentences[:TOLD])


def _place(error: Mapping[str, Any], body: Any) -> tuple[str | int, ...]:
    """Where it is: keys and numbers as the client wrote them, without the names of types that pydantic puts between."""
    source, *steps = error["loc"]
    if source != "body":
        return tuple(steps)
    if error["type"] == "json_invalid":
        return ()
    place: list[str | int] = []
    for number, step in enumerate(steps):
        inside = isinstance(body, dict) and step in body
        inside = inside or (isinstance(body, list) and isinstance(step, int) and 0 <= step < len(body))
        if inside:
            body = body[step]
        if inside or (error["type"] == "missing" and number == len(steps) - 1):
            place.append(step)
    return tuple(place)


def _words(error: Mapping[str, Any], place: Sequence[str | int]) -> str:
    """What is allowed, so that it follows the name of a field."""
    kind, limits = error["type"], error.get("ctx", {})
    if kind in WORDS:
        return WORDS[kind](limits)
    if kind == "json_invalid":
        return f"is not JSON: {limits['error']} at character {error['loc'][-1]}"
    allowed = TYPES.get(kind.removesuffix("_type").removesuffix("_parsing").removesuffix("_from_float"))
    if allowed is None:
        return str(error["msg"])
    json = " in JSON, sent as application/json" if not place and allowed == "an object" else ""
    return f"must be {allowed}{json}"


def _entries(number: int) -> str:
    return f"{number} {plural(number, 'entry', 'entries')}"


def _telling(words: Sequence[str], *, inside: bool) -> list[str]:
    """Without "must be a text" and the like where something else is wrong there, or with something `inside`.

    A value that may be of several kinds is checked as each of them, so that it is always none of the others.
    """
    others = [one for one in words if not _is_kind(one)]
    return others if others or inside else list(words)


def _is_kind(words: str) -> bool:
    return words.removeprefix("must be ") in TYPES.values()


def _joined(words: Sequence[str]) -> str:
    if all(map(_is_kind, words)):
        return f"must be {' or '.join(one.removeprefix('must be ') for one in words)}"
    return " and ".join(words)


def _named(place: Sequence[str | int]) -> str:
    """As one writes it: documents[0].text; a label by its name in quotes."""
    if not place:
        return "the request"
    first, *others = place
    parts = (f".{one}" if isinstance(one, str) and one.isidentifier() else f"[{brief(one)}]" for one in others)
    return "".join([str(first), *parts])
