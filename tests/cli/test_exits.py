"""How `setscore` ends: each status with its line, and never a traceback. Redirections, pipes and signals are real."""

import importlib
import json
import os
import signal
import subprocess
import time
import zipfile
from functools import partial

import pytest
from commands import COMMAND, ENVIRONMENT, checked, invoke, setscore, shell

from setscore import SetScoreClassifier
from setscore.backbones.mini import default_folder

TEXT = "Crude oil prices fell again."


@pytest.fixture
def folder(tmp_path):
    """Files that are wrong, each in its own way."""
    nested = "[" * 100_000 + "]" * 100_000
    files = {
        "parent.yaml": "- name: oil\n  parent: 7\n",
        "surrogate.json": '{"oil\\ud800": "crude"}',
        "nested.json": nested,
        "nested.jsonl": nested + "\n" + json.dumps({"text": TEXT}) + "\n",
        "key.jsonl": '{"\\ud800": 1, "text": "Oil."}\n{"body\\udcff": "Oil."}\n',
        "many.txt": "Oil.\n" * 2000,
        "long.txt": f"{'Oil. ' * 8}\n" * 4000,
        "ids.csv": "id,text\na,Oil.\nb,\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    for name, manifest in (("list", "[]"), ("cut", '{"sha256": '), ("other", '{"sha256": {"model.onnx": "0"}}')):
        (tmp_path / f"manifest-{name}").mkdir()
        (tmp_path / f"manifest-{name}" / "model.onnx").write_bytes(b"")
        (tmp_path / f"manifest-{name}" / "manifest.json").write_text(manifest)
    _bad_onnx(tmp_path / "onnx")
    SetScoreClassifier(["oil"]).save(tmp_path / "model.json")
    (tmp_path / "nested-model.json").write_text(f'{{"format": {nested}}}')
    content = json.loads((tmp_path / "model.json").read_text())
    content["params"]["backbone"] = "hf:somebody/model?allow=remote-code"
    (tmp_path / "consent.json").write_text(json.dumps(content))
    return tmp_path


def _bad_onnx(folder):
    """A manifest that fits its files, one of which is no graph."""
    import hashlib

    folder.mkdir()
    tokenizer = (default_folder() / "tokenizer.json").read_bytes()
    files = {"model.onnx": b"no graph", "tokenizer.json": tokenizer}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    (folder / "manifest.json").write_text(json.dumps({"sha256": sums}))


DAMAGED = (
    "is damaged: it must give a SHA-256 for model.onnx and tokenizer.json, and name no folder. Install the package"
)
MISTAKES = [
    (["-l", "parent.yaml"], "parent.yaml: the parent of label 'oil' was read as int (7), not text. Put it in quotes"),
    (["-l", "surrogate.json"], "the label file surrogate.json is broken: the key 'oil\\ud800' holds a lone surrogate"),
    (["-l", "nested.json"], "the label file nested.json is broken: it is nested more than 64 levels deep"),
    (["--classifier", "nested-model.json"], "nested-model.json cannot be read as JSON: it is nested more than 64"),
    (
        ["--classifier", "labels.yaml"],
        "labels.yaml is no saved classifier, which is a .json file. Labels go with --labels",
    ),
    (["-l", "oil; music"], "'oil; music' would be one label: labels are separated by commas, not by ';'."),
    (["-l", "oil|music"], "'oil|music' would be one label: labels are separated by commas, not by '|'."),
    (["--classifier", "consent.json"], "consent.json: the field params.backbone must be a model without"),
    (
        ["--classifier", "model.json", "--allow", "remot-code"],
        "unknown allowance 'remot-code'. Did you mean 'remote-code'? Known: pickle, remote-code.",
    ),
    (
        ["-l", "oil", "--backbone", "setscore-mini?guidance=nan"],
        "guidance is a finite number, 0 (off) or more, got nan.",
    ),
    (["-l", "oil", "--backbone", "manifest-list"], f"manifest-list/manifest.json {DAMAGED}"),
    (["-l", "oil", "--backbone", "manifest-other"], f"manifest-other/manifest.json {DAMAGED}"),
    (["-l", "oil", "--backbone", "manifest-cut"], f"manifest-cut/manifest.json {DAMAGED}"),
    (["-l", "oil", "--backbone", "onnx"], "onnx/model.onnx is no graph that onnxruntime reads: "),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_a_mistake_to_mend_is_one_line_and_status_2(folder, arguments, message):
    code, out, err = invoke("classify", TEXT, *arguments, "--format", "csv", folder=folder)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.replace(f"{folder}/", "").startswith(f"error: {message}")


def test_a_label_longer_than_the_name_of_a_file_is_a_label():
    label = "x" * 300
    code, out, err = invoke("classify", TEXT, "-l", label, "--format", "jsonl")
    assert (code, list(json.loads(out)["probabilities"]), err) == (0, [label], "")
    code, out, err = invoke("classify", TEXT, "-l", "oil " * 600, "--format", "jsonl")
    assert (code, out) == (2, "")
    assert err.startswith("error: the question about 'oil oil ")
    assert err.endswith(" Shorten that label.\n")


def test_a_row_that_is_nested_too_deeply_fails_alone(folder):
    code, out, err = invoke("classify", "-f", "nested.jsonl", "-l", "oil", "--format", "jsonl", folder=folder)
    assert (code, err) == (1, "1 of 2 rows failed; the others were classified.\n")
    assert json.loads(out.splitlines()[0])["error"] == "row 1 is not valid JSON (it is nested more than 64 levels deep)"


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv"])
def test_a_surrogate_in_a_key_fails_its_row(folder, form):
    code, out, err = setscore("classify", "-f", "key.jsonl", "-l", "oil", "--format", form, folder=folder)
    assert (code, err) == (1, "2 of 2 rows failed.\n")
    assert "row 1 is not valid JSON" in out


def test_an_archive_with_a_password_is_one_line(tmp_path):
    """Python cannot write one, so the bit that says so is set by hand."""
    path = tmp_path / "reuters21578.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("reut2-000.sgm", "<REUTERS>")
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + place] |= 1
    path.write_bytes(bytes(data))
    code, out, err = invoke("evaluate", "reuters", "--data-dir", tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1


CLASSIFY = f"setscore classify '{TEXT}' -l oil,tea"
FULL = "error: standard output cannot be written: No space left on device"
CLOSED = "error: standard output cannot be written: it is closed"
ENDS = [
    (f"{CLASSIFY} --format jsonl > /dev/full", 2, f"{FULL}.\n"),
    (f"{CLASSIFY} > /dev/full", 2, f"{FULL}.\n"),
    (f"{CLASSIFY} --format csv >&-", 2, f"{CLOSED}.\n"),
    ("setscore models > /dev/full", 2, f"{FULL}.\n"),
    ("setscore models >&-", 2, f"{CLOSED}.\n"),
    ("setscore --version > /dev/full", 2, f"{FULL}.\n"),
    ("setscore --help > /dev/full", 2, f"{FULL}.\n"),
    ("setscore classify --help >&-", 2, f"{CLOSED}.\n"),
    (
        f"{CLASSIFY} --format jsonl -o /dev/full",
        2,
        "error: /dev/full cannot be written: No space left on device.\n",
    ),
    # Without standard error there is nobody to tell; the status stays.
    (f"{CLASSIFY},Oil --format jsonl 2>&- | grep -c regime", 0, ""),
    (f"{CLASSIFY} --template none 2>&-", 2, ""),
    (f"{CLASSIFY} --template none 2> /dev/full", 2, ""),
    (f"{CLASSIFY},Oil --format csv > out.csv 2> /dev/full", 0, ""),
    ("setscore classify -f ids.csv -l oil > out.txt 2>&-", 1, ""),
    (f"{CLASSIFY} --format jsonl -o out.jsonl >&- <&-", 0, "1 row written to out.jsonl.\n"),
    (
        "setscore classify -l oil <&-",
        2,
        "error: there were no documents. Give texts, a --file with some, or lines to standard input.\n",
    ),
    # A reader that has seen enough is no mistake.
    ("set -o pipefail; setscore models | head -1 > /dev/null", 0, ""),
    ("setscore classify -f many.txt -l oil | head -1; exit ${PIPESTATUS[0]}", 0, ""),
    ("setscore classify -f many.txt -l oil --format csv | head -1; exit ${PIPESTATUS[0]}", 0, ""),
]


@pytest.mark.parametrize(("line", "status", "message"), ENDS, ids=[line for line, _, _ in ENDS])
def test_full_disks_closed_streams_and_readers_that_leave(folder, line, status, message):
    code, _, err = shell(line, folder)
    assert (code, err) == (status, message)


def test_a_disk_that_is_full_in_the_middle(folder):
    line = "ulimit -f 64; trap '' XFSZ; setscore classify -f long.txt -l oil --format csv -o out.csv"
    code, _, err = shell(line, folder)
    told, error = err.splitlines()
    assert (code, error) == (2, "error: out.csv cannot be written: File too large.")
    rows = int(told.removesuffix(" rows written to out.csv."))
    assert 0 < rows < len((folder / "out.csv").read_text().splitlines())  # the header, and a part of the next block


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["models"], "embedded, English, no download"),
        (["--help"], "Usage: setscore"),
        (["classify", TEXT, "-l", "oil"], "✓"),
    ],
)
def test_a_width_of_zero_is_none(arguments, shown):
    code, out, err = setscore(*arguments, COLUMNS="0")
    assert (code, shown in out, err) == (0, True, "")


def test_an_unforeseen_error_is_ours(monkeypatch):
    def broken(self, *_, **__):
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(SetScoreClassifier, "classify", broken)
    line = "internal error: ZeroDivisionError: division by zero, please report it."
    code, out, err = invoke("classify", TEXT, "-l", "oil", SETSCORE_DEBUG="0")
    assert (code, out, err) == (70, "", f"{line} SETSCORE_DEBUG=1 shows where it happened.\n")
    with pytest.raises(AssertionError, match="in broken"):  # the helper finds the traceback
        invoke("classify", TEXT, "-l", "oil", SETSCORE_DEBUG="1")


@pytest.mark.parametrize("form", ["json", "csv"])
def test_ctrl_c_keeps_what_was_written_and_says_how_much(tmp_path, form):
    code, _, err = _interrupted(tmp_path, "--format", form, "--output", "out")
    content = (tmp_path / "out").read_text()
    rows = len(json.loads(content)) if form == "json" else len(content.splitlines()) - 1
    assert 0 < rows < 5000
    assert (code, err) == (130, f"interrupted: {rows} rows written to out.\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_ctrl_c_while_a_pipe_is_full(tmp_path, unbuffered):
    """Nobody reads on after the first sign, so that Ctrl-C comes while a block is written, or waits to be."""
    code, out, err = _interrupted(tmp_path, "--format", "jsonl", PYTHONUNBUFFERED=unbuffered)
    rows = len(list(map(json.loads, out.splitlines())))
    assert (code, err) == (130, f"interrupted: {rows} rows written.\n")


def _interrupted(folder, *options, **environment):
    """Ctrl-C after the first block is on its way out and long before the last one."""
    (folder / "rows.txt").write_text("Oil, and more of it.\n" * 5000)
    arguments = [COMMAND, "classify", "-f", "rows.txt", "-l", "oil", *options]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # a shell that starts tests in the background has them ignore Ctrl-C, which they would hand on
    listens = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(arguments, env=ENVIRONMENT | environment, cwd=folder, preexec_fn=listens, **streams)  # noqa: PLW1509
    if "--output" in options:
        while not ((folder / "out").exists() and (folder / "out").stat().st_size):
            assert process.poll() is None
            time.sleep(0.01)
    first = b"" if "--output" in options else os.read(process.stdout.fileno(), 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return checked(process.returncode, first + out, err)


def test_ctrl_c_in_any_other_command(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("setscore.cli.datasets"), "find_source", interrupted)
    assert invoke("datasets", "reuters") == (130, "", "interrupted.\n")
