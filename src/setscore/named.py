"""Names that end in options: `jsr?sweeps=2&seed=unary` is a scorer, `platt?objective=macro_f1&most=3` a calibration."""

from setscore.errors import SetScoreError


def split_options(text: str, what: str) -> tuple[str, dict[str, str]]:
    """The name and its options, both as they are written; `what` names the kind of thing in an error."""
    name, _, query = text.partition("?")
    parts = [part.partition("=") for part in query.split("&") if part]
    if any(not equals for _, equals, _ in parts):
        raise SetScoreError(f"options of a {what} are written {name}?option=value&option=value, got {query!r}.")
    found = {key: value for key, _, value in parts}
    if len(found) < len(parts):
        raise SetScoreError(f"an option of the {what} {name} is given twice: {query!r}.")
    return name, found
