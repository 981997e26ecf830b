"""A list in a JSON text, value by value: Python's parser would want the whole text at once."""

import json
import re
from collections.abc import Iterator
from typing import Any, TextIO

from setscore.datasets.files import ContentError
from setscore.errors import DataFileError, brief
from setscore.storage import DECODER, MIB, ROW, check_depth, check_nodes, megabytes, one_line, too_deep

BLOCK = MIB  # characters that are read at a time
_BLANKS = re.compile(r"[ \t\r\n]*")
_EDGE = 16  # characters before the end in which a value that goes on can look broken, as in \u12 or tru
_PLAIN = json.JSONDecoder()


def json_array(stream: TextIO) -> Iterator[Any]:
    """The values of a list. One that is well formed but not allowed, as a key twice, comes as the ValueError."""
    text = _Text(stream)
    if (sign := text.sign()) != "[":
        found = f"it begins with {brief(sign)}" if sign else "it is empty"
        raise ContentError(f"a JSON file of documents is a list, but {found}. One object a line is .jsonl.")
    number = 0
    try:
        sign = text.take()
        while sign != "]":
            value = text.value()
            number += 1
            yield value
            sign = text.sign()
            if sign == ",":
                text.take()
            elif sign != "]":
                raise ValueError("the list is cut off" if not sign else f"expected ',' or ']', got {brief(sign)}")
        if sign := text.take():
            raise ValueError(f"the list has ended, but {brief(sign)} follows")
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataFileError | UnicodeError):
            raise
        said = error.msg if isinstance(error, json.JSONDecodeError) else one_line(error)  # its places are in a block
        raise ContentError(f"the JSON is broken after row {number}: {said}") from error


class _Text:
    """The part of a stream that has been read and is not used up yet."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._text, self._place = "", 0

    def sign(self) -> str:
        """The next character that is no blank; "" at the end."""
        while True:
            found = _BLANKS.match(self._text, self._place)
            self._place = found.end() if found else self._place
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                return ""

    def take(self) -> str:
        """Uses the next character up; the one after it."""
        self._place += 1
        return self.sign()

    def value(self) -> Any:
        """The value that begins here, or the ValueError of one that is not allowed."""
        self.sign()
        while True:
            check_nodes(self._text, ROW, self._place)
            try:
                value, end = DECODER.raw_decode(self._text, self._place)
                check_depth(value)
            except RecursionError:
                raise too_deep(ROW) from None
            except json.JSONDecodeError as error:
                if self._is_cut(error) and self._more():
                    continue
                raise
            except ValueError as error:  # where it ends is not known yet
                value, (_, end) = error, _PLAIN.raw_decode(self._text, self._place)
            if not self._may_go_on(end) or not self._more():
                self._place = end
                return value

    def _may_go_on(self, end: int) -> bool:
        """Whether what ends near the end of what has been read may be the beginning of a longer number."""
        return self._text[end - 1] not in '"]}' and not self._text[end : end + 3].strip(".eE+-")

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether the value may only seem broken because the rest of it has not been read."""
        if len(self._text) - self._place > ROW.size:
            raise ValueError(f"the next row is longer than {megabytes(ROW.size)}")
        return error.msg.startswith("Unterminated") or error.pos > len(self._text) - _EDGE

    def _more(self) -> bool:
        """Reads on, as much again as there is, so that a long value is not parsed over and over."""
        block = self._stream.read(max(BLOCK, len(self._text) - self._place))
        if block:
            self._text, self._place = self._text[self._place :] + block, 0
        return bool(block)
