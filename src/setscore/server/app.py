"""The application: every route, around one line before the model. It decides nothing; it asks layers below."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, Response

from setscore import __version__
from setscore.errors import SetScoreError
from setscore.server import compatible, mistakes, page, project_routes, routes, schemas
from setscore.server.errors import Refused, refusal
from setscore.server.guard import Guard
from setscore.server.projects import Projects
from setscore.server.service import Service
from setscore.server.settings import LOOPBACK, Settings

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Refusal, "description": what}
    for status, what in {
        400: "What was sent cannot be read.",
        401: "A key is needed.",
        404: "There is no such thing.",
        409: "What is there stands against it.",
        413: "More than one request may ask.",
        422: "What was sent is not what is asked for.",
        429: "Too much is waiting; Retry-After says when to come again.",
        504: "There was no answer in time.",
    }.items()
}


def create_app(settings: Settings) -> FastAPI:
    """The application for uvicorn or any other server of ASGI."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        warming = asyncio.create_task(service.warm())
        yield
        warming.cancel()
        for close in service.closing:
            close()
        await service.batcher.stop()

    app = FastAPI(
        title="SetScore",
        version=__version__,
        description="Which of your labels apply to a document.",
        lifespan=lifespan,
        docs_url=None,  # these pages load their scripts from another host
        redoc_url=None,
        responses=REFUSALS,
    )
    app.state.service = service
    _add_routes(app, service)
    app.add_exception_handler(SetScoreError, _mistake)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(Exception, _broken)
    hosts = [*LOOPBACK, *settings.hosts]
    if "*" not in hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    if settings.origins:
        headers = ["authorization", "content-type"]
        app.add_middleware(
            CORSMiddleware, allow_origins=list(settings.origins), allow_methods=["*"], allow_headers=headers
        )
    app.add_middleware(Guard, settings=settings, metrics=service.batcher.metrics)
    return app


def _add_routes(app: FastAPI, service: Service) -> None:
    routes.add(app, service)
    compatible.add(app, service)
    if service.settings.projects is not None:
        project_routes.add(app, service, Projects(service.settings.projects))
        page.add(app)


async def _mistake(_: Request, error: Exception) -> Response:
    return JSONResponse(refusal("validation", str(error)), 422)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return JSONResponse(error.content(), error.status_code, headers=error.headers)


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = "not_found" if error.status_code == 404 else "http"
    return JSONResponse(refusal(kind, str(error.detail)), error.status_code, headers=error.headers)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return JSONResponse(refusal("validation", mistakes.told(error.errors(), error.body)), 422)


async def _broken(_: Request, error: Exception) -> Response:
    return JSONResponse(refusal("internal", f"{type(error).__name__}: please report it."), 500)
