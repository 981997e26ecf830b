"""Reading the data files: what is wrong with one is said with its name, never as a traceback."""

import json
import lzma
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any


def text_lines(path: Path) -> Iterator[str]:
    try:
        with lzma.open(path, "rt", encoding="utf-8") as stream:
            yield from stream
    except FileNotFoundError:
        raise SystemExit(f"{path} is not there. docs/reference/models.md says which files DATA holds.") from None
    except (lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
        raise SystemExit(f"{path} is no whole xz file of UTF-8 text: {error}") from None


def json_lines(path: Path, names: Sequence[str], every: int = 1) -> Iterator[dict[str, Any]]:
    """The objects of a file, every N-th of them; each must have fields of these names."""
    for number, line in enumerate(islice(text_lines(path), 0, None, every)):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise SystemExit(f"{path}, line {number * every + 1}: {error}") from None
        if absent := [name for name in names if not isinstance(record, dict) or name not in record]:
            raise SystemExit(f"{path}, line {number * every + 1}: {' and '.join(absent)} missing.")
        yield record
