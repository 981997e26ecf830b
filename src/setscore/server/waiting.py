"""Waiting for an answer as long as somebody wants it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from setscore.server.errors import Refused

Result = TypeVar("Result")


async def awaited(request: Request, work: Coroutine[Any, Any, Result], timeout: float) -> Result:
    """What `work` gives. It is cancelled, and so leaves the line, when its client goes away or time is up."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if gone.done():
            raise Refused(499, "client_left", "the client left before its answer was ready.")
        raise Refused(504, "timeout", f"there was no answer within {timeout:g} seconds. Send fewer documents at once.")
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
