"""What every request passes: who may ask and how much, what every answer says, and what is counted and logged."""

import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import JSONResponse

from setscore.server.errors import Refused, too_large
from setscore.server.metrics import Metrics
from setscore.server.settings import Settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

OPEN = ("/health", "/ready")  # for whoever watches the server; the page has no secrets either
PAGE = "/page/"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
log = logging.getLogger("setscore.server")


class Guard:
    """Around the application: the key, the size of bodies, headers, counters, a line of log without any content."""

    def __init__(self, app: App, *, settings: Settings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status, left = time.perf_counter(), 500, False
        limit = self.settings.limits.upload if _is_upload(scope) else self.settings.limits.body

        async def told(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                named = {name for name, _ in message["headers"]}
                more = {name.encode(): value.encode() for name, value in HEADERS.items()}
                message["headers"] = [*message["headers"], *((k, v) for k, v in more.items() if k not in named)]
            await send(message)

        try:
            self._check_key(scope)
            await self.app(scope, _limited(scope, receive, limit), told)
        except Refused as refused:
            answer = JSONResponse(refused.content(), refused.status_code, headers=refused.headers)
            await answer(scope, receive, told)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            seconds = time.perf_counter() - begun
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            log.info("%s %s %d %.0f ms%s", scope["method"], route, status, 1000 * seconds, " left" if left else "")

    def _check_key(self, scope: MutableMapping[str, Any]) -> None:
        path = scope["path"]
        is_page = path.startswith(PAGE) or (path == "/" and scope["method"] in ("GET", "HEAD"))
        if self.settings.key is None or path in OPEN or is_page or scope["method"] == "OPTIONS":
            return
        shown = _header(scope, b"authorization").removeprefix("Bearer ")
        if not hmac.compare_digest(shown.encode(), self.settings.key.encode()):
            raise Refused(401, "unauthorized", "a key is needed: send it as Authorization: Bearer KEY.")


def _is_upload(scope: MutableMapping[str, Any]) -> bool:
    return bool(scope["path"].endswith("/documents")) and scope["method"] == "POST"


def _header(scope: MutableMapping[str, Any], name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def _limited(scope: MutableMapping[str, Any], receive: Receive, limit: int) -> Receive:
    """The same body, which must not be larger than said, nor than allowed."""
    message = f"the request is larger than {limit:,} bytes, the limit."
    if (said := _header(scope, b"content-length")).isdecimal() and int(said) > limit:
        raise too_large(message)
    read = 0

    async def limited() -> Message:
        nonlocal read
        part = await receive()
        read += len(part.get("body", b""))
        if read > limit:
            raise too_large(message)
        return part

    return limited
