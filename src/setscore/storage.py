"""Files that hold values: written whole or not at all, and read within limits, because what a file says is only data.

A reader that follows a file wherever it leads can be made to hang or to fill the memory by a few hundred bytes. So
every file that is read as data goes through `read_limited` or a stream with limits of its own, `decoded` and
`parse_json`, and whatever a message quotes from a file goes through `brief` or `one_line`.
"""

import codecs
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from setscore.errors import DataFileError, brief, nearest
from setscore.records import text_problem

MIB = 2**20
NEIGHBOURS = 10_000  # files of a folder that are compared with one that is not there


@dataclass(frozen=True)
class Limits:
    """How much a file that is read as data may hold.

    size   bytes of a file that is read whole, characters of a row or a cell of one that is read row by row
    nodes  values in it, with those inside other values; what is repeated by a YAML alias counts each time
    depth  values inside values
    """

    size: int = 64 * MIB
    nodes: int = 10_000_000
    depth: int = 64


ROW = Limits()
SAVED = Limits(size=256 * MIB)  # what `write_json` wrote; numbers that were fitted take room

# Longer marks first: UTF-32 begins as UTF-16 does.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LINE = 300  # characters of another library's message that are passed on


def write_json(path: str | Path, form: str, content: dict[str, Any]) -> None:
    """Writes a JSON file whole or not at all."""
    write_bytes(Path(path), f"{as_json({'format': form, **content})}\n".encode())


def as_json(content: Any) -> str:
    """Values of ours as a JSON text."""
    return json.dumps(content, indent=2, ensure_ascii=False, default=_plain)


def write_bytes(path: Path, data: bytes) -> None:
    """Writes beside the target and renames, so that a full disk or a kill leaves no half file."""
    # Not tempfile: its files are readable by their owner alone, and a server often runs as somebody else.
    temporary = path.parent / f"{path.name}.{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):  # it may never have come to be
            temporary.unlink()
        raise DataFileError(f"{path} cannot be written: {error.strerror}.") from error


def read_json(path: str | Path, form: str, *older: str) -> dict[str, Any]:
    """The content of a file that `write_json` wrote in the same format, or in one of the `older` ones."""
    content = load_json(path, SAVED)
    found = content.get("format") if isinstance(content, dict) else None
    if found not in (form, *older):
        raise DataFileError(f"{path} has the format {brief(found)}; this version of SetScore reads {form!r}.")
    return dict(content)


@contextmanager
def reading_json(path: str | Path, form: str) -> Iterator[dict[str, Any]]:
    """`read_json` around the code that takes the content apart: whatever is missing there is the file's mistake."""
    content = read_json(path, form)
    try:
        yield content
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DataFileError(f"{path} is damaged: {type(error).__name__}: {one_line(error)}") from error


def load_json(path: str | Path, limits: Limits = ROW) -> Any:
    """The value in a JSON file of any layout, such as a manifest or a configuration."""
    try:
        with Path(path).open("rb") as file:
            return parse_json(decoded(read_limited(file, limits)), limits)
    except OSError as error:
        raise DataFileError(f"the file {path} cannot be read: {error.strerror}.{near_file(path)}") from error
    except ValueError as error:
        raise DataFileError(f"{path} cannot be read as JSON: {one_line(error)}") from error


def near_file(path: str | Path) -> str:
    """A question, with a blank before it, if a file that is not there has a neighbour of a similar name; else none."""
    path = Path(path)
    try:
        if path.exists():
            return ""
        names = [one.name for one in islice(path.parent.iterdir(), NEIGHBOURS) if one.is_file()]
    except OSError:
        return ""
    near = nearest(path.name, sorted(names))
    return f" Did you mean {str(path.with_name(near))!r}?" if near else ""


def read_limited(file: BinaryIO, limits: Limits = ROW) -> bytes:
    """All of an open file, which may be a pipe or compressed; a ValueError if it is larger than allowed."""
    data = file.read(limits.size + 1)
    if len(data) > limits.size:
        raise ValueError(f"it is larger than {megabytes(limits.size)}, the limit")
    return data


def encoding_of(start: bytes) -> str:
    """How a text is encoded, by the mark at its beginning; UTF-8 without one. A ValueError for UTF-16 without one."""
    if found := next((name for mark, name in _MARKS if start.startswith(mark)), None):
        return found
    places = [place for place, byte in enumerate(start[:1024]) if byte == 0]
    if len(places) * 4 > min(len(start), 1024) and len({place % 2 for place in places}) == 1:
        raise ValueError("it looks like UTF-16 without a byte order mark; save it as UTF-8")
    return "utf-8"


def decoded(data: bytes) -> str:
    """Text in UTF-8, or in UTF-16 or UTF-32 where a mark at its beginning says so; else a ValueError."""
    return data.decode(encoding_of(data))


def parse_json(text: str, limits: Limits = ROW) -> Any:
    """The value of a JSON text. What is broken, too much or ambiguous is a ValueError of one short line."""
    check_nodes(text, limits)
    try:
        value = DECODER.decode(text)
    except RecursionError:
        raise too_deep(limits) from None
    check_depth(value, limits)
    return value


def check_nodes(text: str, limits: Limits = ROW, start: int = 0) -> None:
    """A ValueError if a JSON text may hold more values than allowed: it has at least as many of these signs."""
    if len(text) - start > limits.nodes and sum(text.count(sign, start) for sign in ",[{") > limits.nodes:
        raise ValueError(f"it holds more than {limits.nodes:,} values")


def check_depth(value: Any, limits: Limits = ROW) -> None:
    """A ValueError if lists and mappings are nested deeper than allowed: whoever walks through them recurses."""
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        if depth > limits.depth:
            raise too_deep(limits)
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]


def too_deep(limits: Limits) -> ValueError:
    return ValueError(f"it is nested more than {limits.depth} levels deep")


def unique(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """A mapping of `pairs`. Parsers keep the last of equal keys and say nothing, so a value would be lost."""
    made: dict[Any, Any] = {}
    for key, value in pairs:
        if key in made:
            raise ValueError(f"{brief(key)} appears twice in one mapping. Remove one of them.")
        if isinstance(key, str) and key.strip() and (problem := text_problem(key)):
            raise ValueError(f"the key {brief(key)} {problem}")
        made[key] = value
    return made


DECODER = json.JSONDecoder(object_pairs_hook=unique)


def listed(values: Iterable[Any], most: int = 20, *, quoted: bool = True) -> str:
    """Values as a message lists them: the first ones, each of them briefly."""
    shown = [brief(value, 40) if quoted else f"{value:.40}" for value in islice(values, most + 1)]
    return ", ".join(shown[:most]) + (", …" if len(shown) > most else "")


def one_line(error: Exception) -> str:
    """Another library's message on one line of bounded length."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LINE else f"{text[:_LINE]}…"


def megabytes(size: int) -> str:
    return f"{size // MIB:,} MiB" if size >= MIB else f"{size:,} bytes"


def _plain(value: Any) -> Any:
    """NumPy's numbers, as a parameter search sets them, as JSON numbers; options that are dataclasses as objects."""
    if is_dataclass(value) and not isinstance(value, type):
        return value.plain() if hasattr(value, "plain") else vars(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be written as JSON.")
