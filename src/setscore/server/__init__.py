"""A server: documents and labels in, predictions out, and a page to try labels and to label documents."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from setscore.errors import MissingExtraError, SetScoreError
from setscore.server.settings import Limits, Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["Limits", "Settings", "create_app", "serve"]


def create_app(settings: Settings) -> "FastAPI":
    """The application, for a server of ASGI."""
    try:
        from setscore.server import app
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"the server (it imports {error.name})", "serve") from error
    return app.create_app(settings)


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    log_requests: bool = False,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serves until it is told to end (SIGTERM, SIGINT); then it answers what it has accepted.

    `started` is told the address as soon as the server listens; with port 0 it is a free one.
    """
    app = create_app(settings)
    import uvicorn

    if log_requests or settings.log_documents:
        logging.basicConfig(format="%(asctime)s %(message)s")
        logging.getLogger("setscore.server").setLevel(logging.INFO)
    config = uvicorn.Config(
        app, host=host, port=port, access_log=False, server_header=False, log_level="warning", lifespan="on"
    )
    try:
        listening = config.bind_socket()
    except SystemExit as error:  # uvicorn has told why
        raise SetScoreError(f"{host}:{port} cannot be listened on. Is another server there? Try --port 0.") from error
    listening.listen(config.backlog)  # who comes while the server starts waits for it
    bound = listening.getsockname()[1]
    if started is not None:
        started(f"http://{f'[{host}]' if ':' in host else host}:{bound}")
    uvicorn.Server(config).run(sockets=[listening])
