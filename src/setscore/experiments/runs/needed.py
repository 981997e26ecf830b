"""The libraries that configs and folders of runs need, or the error that says how to get them."""

import importlib.util

from setscore.errors import MissingExtraError

LIBRARIES = ("pydantic", "pyarrow")


def check_libraries(what: str) -> None:
    for name in LIBRARIES:
        if importlib.util.find_spec(name) is None:
            raise MissingExtraError(f"{what} (it imports {name})", "run")
