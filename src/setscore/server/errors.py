"""Why a request is refused, with the status that says so."""

import math

from starlette.exceptions import HTTPException


class Refused(HTTPException):
    """An answer other than the one asked for: its status, what kind of mistake it is, and what to do."""

    def __init__(self, status: int, kind: str, message: str, *, retry_after: float | None = None) -> None:
        again = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}
        super().__init__(status, message, again)
        self.kind = kind

    def __str__(self) -> str:
        return self.detail

    def content(self) -> dict[str, str]:
        return refusal(self.kind, self.detail)


def refusal(kind: str, message: str) -> dict[str, str]:
    """The body of every answer that is none, as text-embeddings-inference has it."""
    return {"error": message, "error_type": kind}


def too_large(message: str) -> Refused:
    return Refused(413, "validation", message)


def invalid(message: str) -> Refused:
    return Refused(422, "validation", message)


def unknown(message: str) -> Refused:
    return Refused(404, "not_found", message)
