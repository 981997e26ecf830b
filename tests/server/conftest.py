"""Servers for tests: one without weights in this process, and a real one on a port, shared by all that need it."""

import contextlib

import pytest
from fakes import FakeBackbone

from setscore import SetScoreClassifier

pytest.importorskip("fastapi", reason="the extra serve is not installed")

from servers import LABELS, running
from starlette.testclient import TestClient

from setscore.server import Limits, Settings, create_app


@pytest.fixture
def described():
    return SetScoreClassifier(backbone=FakeBackbone())


@pytest.fixture
def start(described, tmp_path):
    """A client of a server in this process, with settings as given."""
    with contextlib.ExitStack() as stack:

        def started(**settings):
            chosen = {"described": described, "served": {"news": SetScoreClassifier(LABELS, backbone=FakeBackbone())}}
            app = create_app(Settings(**{**chosen, "projects": tmp_path / "projects.sqlite", **settings}))
            client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
            return stack.enter_context(client)

        yield started


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """A server with the embedded model."""
    served = {"news": SetScoreClassifier(LABELS)}
    projects = tmp_path_factory.mktemp("served") / "projects.sqlite"
    with running(Settings(SetScoreClassifier(), served, projects, limits=Limits(timeout=120))) as where:
        yield where


@pytest.fixture
def plain(described, tmp_path):
    """One without weights."""
    served = {"news": SetScoreClassifier(LABELS, backbone=FakeBackbone())}
    with running(Settings(described, served, tmp_path / "projects.sqlite")) as where:
        yield where
