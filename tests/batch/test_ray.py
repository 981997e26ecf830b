"""The same rows from Ray as from one process, whoever dies on the way."""

import json
import os
import secrets
import signal
import subprocess
import sys
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from batches import ASK, LABELS, SITE, TESTS, is_running, parts, rows, wait_until, write_csv
from commands import COMMAND, ENVIRONMENT, invoke
from fakes import FakeBackbone

from setscore import SetScoreClassifier
from setscore.batch.folders import folder_at
from setscore.batch.inputs import find_input
from setscore.batch.layouts import Head, Layout
from setscore.batch.plan import make_plan
from setscore.batch.ray_engine import RayEngine, _Worker
from setscore.batch.records import attempt_name
from setscore.batch.scoring import Job
from setscore.errors import SetScoreError

pytest.importorskip("ray")
SEARCH = os.pathsep.join([str(SITE), str(TESTS), os.environ.get("PYTHONPATH", "")])
# Whoever joins a cluster shows its token; ours is made here.
OURS = ENVIRONMENT | {"PYTHONPATH": SEARCH, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
CUT = ("--shard-rows", "20")
HEAD = """
import sys, ray
ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
print("address", ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
ray.shutdown()
"""
CONTENT = [*rows(100), ("d", "DEADLY, about oil"), ("p", "POISON"), ("", ""), *rows(60), ("q", "POISON")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ray")


@pytest.fixture(scope="module")
def source(folder):
    return write_csv(folder / "in.csv", CONTENT)


@pytest.fixture(scope="module")
def cluster(folder):
    """The options of a batch on a cluster of this machine, started once: starting takes longer than all the tests.

    Its workers die once for DEADLY, while the file `grave` is not there, and take their time, so that a driver can be
    killed midway.
    """
    head = subprocess.Popen(
        [sys.executable, "-c", HEAD],
        env=OURS | {"FAKE_GRAVE": str(folder / "grave"), "FAKE_SECONDS": "0.2"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    address = next(line.split()[1] for line in head.stdout if line.startswith("address "))
    yield ("--engine", "ray", "--workers", "2", "--address", address)
    head.communicate("", timeout=60)


@pytest.fixture(scope="module")
def calm(folder, source):
    """What one process writes that nobody disturbs."""
    (folder / "grave").touch()
    code, _, err = invoke("batch", source, folder / "calm", *ASK, *CUT, FAKE_GRAVE=str(folder / "grave"))
    assert (code, "3 of 164 rows failed" in err) == (1, True), err
    (folder / "grave").unlink()
    return parts(folder / "calm")


def started(*arguments, **environment):
    return subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        env=OURS | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_worker_that_dies_and_poison_cost_nothing(folder, source, calm, cluster):
    """At addresses, so that object storage goes the same way."""
    (folder / "grave").unlink(missing_ok=True)
    child = started("batch", f"file://{source}", f"file://{folder}/out", *ASK, *CUT, *cluster)
    _, err = child.communicate(timeout=600)
    assert child.returncode == 1, err
    assert "3 of 164 rows failed; each says why in error." in err
    assert "Traceback" not in err
    assert (folder / "grave").exists()  # a worker has died
    assert parts(folder / "out") == calm


def test_a_driver_that_is_killed_is_gone_on_with(folder, source, calm, cluster):
    (folder / "grave").touch()
    child = started("batch", source, folder / "killed", *ASK, *CUT, *cluster)
    receipts = folder / "killed" / "_shards"
    wait_until(lambda: len(list(receipts.glob("*.json"))) >= 2 or child.poll() is not None, 600)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    done = {path.name: json.loads(path.read_text()) for path in receipts.glob("*.json")}
    assert 2 <= len(done) < 9
    assert not is_running(child.pid)
    again = started("batch", source, folder / "killed", *ASK, *CUT, *cluster)
    _, err = again.communicate(timeout=600)
    assert again.returncode == 1, err
    assert "rows of them were there" in err
    assert parts(folder / "killed") == calm


def test_a_shard_that_kills_every_worker_is_named(source, tmp_path):
    """An actor cannot see that others died before it, but for their notes."""
    model = SetScoreClassifier(LABELS, backbone=FakeBackbone())
    plan = make_plan(find_input(str(source), folder_at(str(tmp_path))), 82)
    worker = _Worker(Job(model, plan.source, Head(Layout(), tuple(LABELS), False, "x"), str(tmp_path)), 1)
    batch = {"shard": [json.dumps(asdict(plan.shards[0]))]}
    for attempt in range(2):
        with folder_at(str(tmp_path)).create(attempt_name(0, attempt)):
            pass
    (answer,) = worker(batch)["answer"]
    assert json.loads(answer)["rows"] == 82
    assert not list(tmp_path.glob("_shards/*.attempt"))
    for attempt in range(3):
        with folder_at(str(tmp_path)).create(attempt_name(0, attempt)):
            pass
    (answer,) = worker(batch)["answer"]
    assert json.loads(answer).startswith("3 workers died one after the other over shard 0, perhaps for want of memory.")


class Cluster:
    """As much of Ray as is asked what it has."""

    def __init__(self, *nodes: int, gpus: int = 0) -> None:
        self._nodes, self._gpus = nodes, gpus

    def cluster_resources(self):
        return {"CPU": float(sum(self._nodes)), "GPU": float(self._gpus)}

    def nodes(self):
        return [{"Alive": True, "Resources": {"CPU": float(cpus)}} for cpus in self._nodes]


@pytest.mark.parametrize(
    ("engine", "cluster", "shards", "shares"),
    [
        (RayEngine("auto"), Cluster(8, 8), 100, (15, 1)),
        (RayEngine("auto", 3), Cluster(8, 8), 100, (3, 5)),
        (RayEngine("auto", 1), Cluster(4, 8), 100, (1, 4)),  # an actor fits on a machine
        (RayEngine("auto", 15), Cluster(8, 8), 2, (2, 7)),  # not more than there is to do
        (RayEngine("auto", gpus=4), Cluster(16, gpus=4), 100, (4, 3)),
    ],
)
def test_workers_never_ask_for_all_there_is(engine, cluster, shards, shares):
    assert engine._shares(cluster, shards) == shares


def test_without_an_address_ray_is_started_with_a_slot_more_than_works(monkeypatch):
    asked = []
    ray = SimpleNamespace(init=lambda **options: asked.append(options))
    monkeypatch.setattr("setscore.batch.ray_engine.cores", lambda: 2)
    RayEngine(workers=4)._begin(ray)
    RayEngine("auto")._begin(ray)
    assert [(one.get("num_cpus"), one.get("address")) for one in asked] == [(5, None), (None, "auto")]


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (RayEngine("auto", 16), "16 workers were asked for; Ray has 16 CPUs, and one stays free"),
        (RayEngine("auto", gpus=2), "2 GPUs were asked for, Ray has 0. Lower --gpus."),
    ],
)
def test_workers_that_would_wait_for_ever_are_an_error(engine, message):
    with pytest.raises(SetScoreError, match=message):
        engine._shares(Cluster(8, 8), 100)
