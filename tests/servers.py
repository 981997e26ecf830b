"""A real server in a thread, and what several tests of servers ask."""

import contextlib
import threading
import time

import uvicorn

from setscore.server import create_app

LABELS = {"oil": None, "weather": "rain or sun", "billing problem": "a wrong charge"}
KEY = "a-secret-key"


@contextlib.contextmanager
def running(settings):
    """The address of a server on a port of its own, ready."""
    app = create_app(settings)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", access_log=False)
    listening = config.bind_socket()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not (server.started and app.state.service.ready):
            time.sleep(0.02)
            assert thread.is_alive()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
