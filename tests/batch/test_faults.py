"""Whatever happens to a batch, nothing is lost, doubled or mixed: real processes, real signals, real files."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from batches import ASK, LABELS, SITE, TESTS, Command, is_running, parts, rows, wait_until, write_csv
from commands import COMMAND, ENVIRONMENT, invoke
from fakes import FakeBackbone

from setscore import SetScoreClassifier
from setscore.batch import processes, run_batch
from setscore.batch.folders import folder_at
from setscore.batch.identity import differences, identity_parts
from setscore.batch.locks import LockedError, locked
from setscore.batch.scoring import ShardScorer
from setscore.errors import DataFileError, SetScoreError
from setscore.fitting import Fitted
from setscore.readout import ARRAYS, Readout
from setscore.records import LabelSet

KILLS = 10
CUT = ("--shard-rows", "10")


@pytest.fixture
def model():
    return SetScoreClassifier(LABELS, backbone=FakeBackbone())


def test_kills_at_ten_random_points_change_no_byte(source, tmp_path):
    """Each run is killed at another moment: before the first shard, between two, in the middle of a write."""
    code, _, err = invoke("batch", source, tmp_path / "calm.parquet", *ASK, *CUT)
    assert code == 0, err
    chance, out = random.Random(7), tmp_path / "killed.parquet"
    receipts = tmp_path / "killed.parquet.parts" / "_shards"
    seen = []
    for _ in range(KILLS):
        before = len(list(receipts.glob("*.json")))
        child = Command("batch", source, out, *ASK, *CUT, FAKE_SECONDS="0.01")
        wait_until(lambda before=before: len(list(receipts.glob("*.json"))) > before)
        time.sleep(chance.random() * 0.02)
        child.kill()
        seen.append(len(list(receipts.glob("*.json"))))
        assert not out.exists()
    assert seen == sorted(seen)  # what was done stays done
    assert 0 < seen[-1] < 30, "the kills came too late"
    code, _, err = invoke("batch", source, out, *ASK, *CUT)
    assert code == 0, err
    assert f"{10 * seen[-1]} rows of them were there" in err
    assert out.read_bytes() == (tmp_path / "calm.parquet").read_bytes()
    assert not list(tmp_path.glob("killed.parquet.parts/part-*"))
    assert not list(tmp_path.glob("**/*.tmp"))


def test_a_killed_parent_takes_its_workers_along(source, tmp_path):
    """Workers that went on would write into a folder that somebody else has by then."""
    child = Command("batch", source, tmp_path / "out", *ASK, *CUT, "--workers", 2, FAKE_SECONDS="0.1")
    wait_until(lambda: list((tmp_path / "out").glob("part-*.parquet")))
    workers = [int(pid) for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()]
    assert len(workers) >= 2
    child.kill()
    wait_until(lambda: not any(is_running(pid) for pid in workers))
    code, _, err = invoke("batch", source, tmp_path / "out", *ASK, *CUT)
    assert code == 0, err
    code, _, _ = invoke("batch", source, tmp_path / "calm", *ASK, *CUT)
    assert parts(tmp_path / "out") == parts(tmp_path / "calm")


def test_a_worker_that_dies_is_replaced(tmp_path):
    source = write_csv(tmp_path / "in.csv", [*rows(60), ("d", "DEADLY, about oil"), ("p", "POISON"), *rows(40)])
    grave = {"FAKE_GRAVE": str(tmp_path / "grave")}
    code, err = Command("batch", source, tmp_path / "out", *ASK, *CUT, "--workers", 2, **grave).ended()
    assert (code, "1 of 102 rows failed" in err) == (1, True), err
    assert (tmp_path / "grave").exists()
    code, _, _ = invoke("batch", source, tmp_path / "calm", *ASK, *CUT, **grave)
    assert parts(tmp_path / "out") == parts(tmp_path / "calm")


def test_workers_that_die_over_and_over_are_an_error(model, source, tmp_path, monkeypatch):
    engine = processes(2)
    done = []

    def dying(job, shards):
        done.append(len(shards))
        yield ShardScorer(job)(shards[0])
        if len(done) > 1:
            raise BrokenProcessPool

    def dead(job, shards):
        raise BrokenProcessPool

    monkeypatch.setattr(engine, "_pass", dying)
    assert run_batch(model, str(source), str(tmp_path / "a"), shard_rows=100, engine=engine).rows == 300
    assert done == [3, 2, 1]  # an accident after each shard costs none
    monkeypatch.setattr(engine, "_pass", dead)
    with pytest.raises(SetScoreError, match="3 workers died one after the other, perhaps for want of memory; 3 shards"):
        run_batch(model, str(source), str(tmp_path / "b"), shard_rows=100, engine=engine)


@pytest.mark.parametrize("damage", ["torn", "flipped", "missing", "no receipt", "half a receipt"])
def test_a_shard_that_is_not_whole_is_scored_again(model, source, tmp_path, damage):
    run_batch(model, str(source), str(tmp_path / "out"), shard_rows=100)
    before = parts(tmp_path / "out")
    last, receipt = tmp_path / "out" / "part-000002.parquet", tmp_path / "out" / "_shards" / "000002.json"
    data = last.read_bytes()
    if damage == "torn":
        last.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        last.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    elif damage == "missing":
        last.unlink()
    elif damage == "no receipt":
        receipt.unlink()
    else:
        receipt.write_text(receipt.read_text()[:40])
    again = run_batch(model, str(source), str(tmp_path / "out"), shard_rows=100)
    assert (again.rows, again.reused) == (300, 200)
    assert parts(tmp_path / "out") == before


def test_another_identity_is_refused_by_name(source, tmp_path):
    assert invoke("batch", source, tmp_path / "out.jsonl", *ASK)[0] == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    for options, named in [
        (("--template", "Is this about {label}?"), "template (then "),
        (("--threshold", "0.4"), "threshold (then 0.5, now 0.4)"),
        (("--long-documents", "chunk"), "long_documents (then 'auto', now 'chunk')"),
        (("--log-odds",), "output (then "),
        (("--shard-rows", "7"), "rows of a shard (then 2048, now 7)"),
        (("--attention", "exact"), "weights and prompt (then 'fake shared 2000', now 'fake exact 2000')"),
    ]:
        code, _, err = invoke("batch", source, tmp_path / "out.jsonl", *ASK, *options)
        assert code == 2
        assert "holds a batch that differs in" in err
        assert named in err
        assert (tmp_path / "out.jsonl").read_bytes() == before
    code, _, err = invoke("batch", source, tmp_path / "out.jsonl", *ASK, "--threshold", "0.4", "--force")
    assert code == 0, err
    assert (tmp_path / "out.jsonl").read_bytes() != before
    code, _, err = invoke("batch", source, tmp_path / "out.jsonl", *ASK, "--threshold", "0.4")
    assert "300 rows of them were there" in err


def test_rows_that_changed_are_refused(model, source, tmp_path):
    run_batch(model, str(source), str(tmp_path / "out.jsonl"))
    stamp = source.stat()
    changed = source.read_text().replace("number 7.", "number 8.")
    source.write_text(changed)
    os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # dates say nothing
    with pytest.raises(SetScoreError, match=r"differs in content of the rows \("):
        run_batch(model, str(source), str(tmp_path / "out.jsonl"))


@pytest.mark.parametrize("change", ["other", "fewer", "more in the middle"])
def test_input_that_changes_under_us_is_an_error(source, tmp_path, change):
    lines = source.read_text().splitlines(keepends=True)
    changed = {
        "other": [*lines[:-1], "n299,something else\n"],
        "fewer": lines[:-5],
        "more in the middle": [*lines[:250], "new,one\n", *lines[250:]],
    }[change]

    class Changing(FakeBackbone):
        def log_odds(self, queries):
            source.write_text("".join(changed))
            return super().log_odds(queries)

    (tmp_path / "out").mkdir()
    model = SetScoreClassifier(LABELS, backbone=Changing())
    with pytest.raises(DataFileError, match="the input changed while it was scored: the rows of shard"):
        run_batch(model, str(source), str(tmp_path / "out"), shard_rows=100)
    assert not (tmp_path / "out" / "part-000002.parquet").exists()


def test_the_second_writer_is_told_who_is_first(source, tmp_path):
    child = Command("batch", source, tmp_path / "out", *ASK, *CUT, FAKE_SECONDS="0.2")
    try:
        wait_until((tmp_path / "out" / "_manifest.json").exists)
        code, _, err = invoke("batch", source, tmp_path / "out", *ASK, *CUT)
        assert code == 2
        assert f"out is being written by process {child.pid} on " in err
    finally:
        child.kill()
    code, _, err = invoke("batch", source, tmp_path / "out", *ASK, *CUT)  # the lock of one who is gone is nobody's
    assert code == 0, err


def test_a_lock_in_object_storage_is_a_note(tmp_path, monkeypatch):
    folder = folder_at(f"file://{tmp_path}/out")
    folder.make()
    note = tmp_path / "out" / "_lock"
    with locked(folder):
        mine = json.loads(note.read_text())
        assert mine["process"] == os.getpid()
        with pytest.raises(LockedError, match=f"is being written by process {os.getpid()} on "), locked(folder):
            pass
    assert not note.exists()
    gone = subprocess.Popen(["true"])
    gone.wait()
    for left in (mine | {"process": gone.pid}, mine | {"host": "elsewhere", "renewed": time.time() - 3600}):
        note.write_text(json.dumps(left))
        with locked(folder):
            assert json.loads(note.read_text())["process"] == os.getpid()
    note.write_text(json.dumps(mine | {"host": "elsewhere"}))
    with pytest.raises(LockedError, match="on elsewhere, since"), locked(folder):
        pass
    note.write_text("{half")
    with locked(folder):
        pass


NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="a small disk needs `unshare --user --mount`")
@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_a_full_disk_is_one_line_and_costs_nothing_that_is_done(source, tmp_path, form):
    """On a disk of 160 kB; what was done there is taken to a larger one, and gone on with."""
    many = write_csv(tmp_path / "many.csv", rows(1500))
    disk = tmp_path / "disk"
    disk.mkdir()
    options = " ".join([*ASK, "--shard-rows", "100", "--format", form, "--log-odds"])
    script = f"mount -t tmpfs -o size=160k none {disk} && {{ {COMMAND} batch {many} {disk}/out {options}; code=$?; }};"
    script += f" cp -r {disk}/out {tmp_path}/saved; exit $code"
    search = os.pathsep.join([str(SITE), str(TESTS)])
    done = subprocess.run(
        [*NAMESPACE, "bash", "-c", script], capture_output=True, text=True, env=ENVIRONMENT | {"PYTHONPATH": search}
    )
    assert done.returncode == 2, done.stderr
    assert "cannot be written: No space left on device." in done.stderr
    assert "Traceback" not in done.stderr
    there = len(list((tmp_path / "saved" / "_shards").glob("*.json")))
    assert there > 0
    code, _, err = invoke("batch", many, tmp_path / "saved", *options.split())
    assert code == 0, err
    assert f"{100 * there} rows of them were there" in err
    assert invoke("batch", many, tmp_path / "calm", *options.split())[0] == 0
    assert parts(tmp_path / "saved") == parts(tmp_path / "calm")


def test_a_read_only_folder_is_one_line(source):
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to others
        folder = Path(place) / "closed"
        folder.mkdir()
        shutil.copy(source, place)
        Path(place).chmod(0o755)
        folder.chmod(0o555)
        code, err = Command("batch", Path(place) / "in.csv", folder / "out.jsonl", *ASK, nobody=True).ended()
        folder.chmod(0o755)
    assert (code, err) == (2, f"error: {folder}/out.jsonl.parts cannot be written: Permission denied.\n")


def test_an_interrupted_run_says_that_it_can_go_on(source, tmp_path):
    child = Command("batch", source, tmp_path / "out", *ASK, *CUT, FAKE_SECONDS="0.1")
    wait_until(lambda: list((tmp_path / "out").glob("part-*.parquet")))
    child.send(signal.SIGINT)
    code, err = child.ended()
    assert code == 130
    assert re.search(r"interrupted: \d+0 of 300 rows are done. The same command again goes on from there\.", err)


def test_one_file_that_was_damaged_or_removed_is_made_anew(model, source, tmp_path):
    out = tmp_path / "out.csv"
    run_batch(model, str(source), str(out))
    before = out.read_bytes()
    for damage in (out.unlink, lambda: out.write_bytes(before[:100])):
        damage()
        assert run_batch(model, str(source), str(out)).reused == 0
        assert out.read_bytes() == before
    assert run_batch(model, str(source), str(out)).reused == 300


def test_a_manifest_that_cannot_be_read_is_an_error(model, source, tmp_path):
    run_batch(model, str(source), str(tmp_path / "out"))
    manifest = tmp_path / "out" / "_manifest.json"
    for content, message in [("{", "is damaged. Add --force"), ('{"format": "other"}', "has the format 'other'")]:
        manifest.write_text(content)
        with pytest.raises(DataFileError, match=message):
            run_batch(model, str(source), str(tmp_path / "out"))
    run_batch(model, str(source), str(tmp_path / "out"), force=True)


def test_no_worker_is_too_few():
    with pytest.raises(SetScoreError, match=r"at least 1 worker is needed, got 0\."):
        processes(0)


def test_another_read_out_is_another_identity(tmp_path):
    """Its arrays count, though they lie beside the classifier's file."""
    readout = Readout(**{name: np.zeros(2) for name in ARRAYS}, cosine=0.1)
    found = []
    for changed in (readout, readout, replace(readout, biases=np.array([0.0, 1e-9])), None):
        model = SetScoreClassifier(["oil", "sports"], backbone=FakeBackbone())
        model.fitted_ = Fitted(LabelSet.of(model.labels), model.current_calibration(), readout=changed)
        found.append(identity_parts(model))
    assert found[0] == found[1]
    for other in found[2:]:
        assert [phrase.split(" (")[0] for phrase in differences(found[0], other)] == ["read-out"]
