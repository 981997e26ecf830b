"""The page: static files of the package, read once. Nothing in a request is a path."""

from hashlib import sha256
from importlib.resources import files

from fastapi import FastAPI, Request
from starlette.responses import Response

from setscore.server.errors import unknown

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def add(app: FastAPI) -> None:
    """The page at `/`, its parts below `/page/`."""
    folder = files("setscore.server") / "page"
    found = {one.name: one.read_bytes() for one in folder.iterdir() if one.name.endswith(tuple(TYPES))}

    def part(request: Request, name: str) -> Response:
        if name not in found:
            raise unknown("there is no such part of the page.")
        tag = f'"{sha256(found[name]).hexdigest()[:16]}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        kind = TYPES[name[name.rindex(".") :]]
        return Response(found[name], media_type=f"{kind}; charset=utf-8", headers=headers)

    @app.get("/", include_in_schema=False)
    async def index(request: Request) -> Response:
        return part(request, "index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def file(request: Request, name: str) -> Response:
        return part(request, name)
