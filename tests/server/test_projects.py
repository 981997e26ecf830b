"""Projects: what is said is kept, whatever dies; what was learned is what the command line loads."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from commands import invoke
from fakes import FakeBackbone
from hypothesis import given, settings
from hypothesis import strategies as st
from servers import LABELS

from setscore import LabelSet, SetScoreClassifier
from setscore.errors import DataFileError
from setscore.server.learning import cross_validate, needs
from setscore.server.projects import Projects

TEXT = {"content-type": "text/plain"}
ROWS = [("oil", ["oil"]), ("rain or sun", ["weather"]), ("a wrong charge", ["billing problem"]), ("nothing", [])]


def made(client, rows=()):
    """A project with documents, some of which are done."""
    project = client.post("/projects", json={"name": "Tickets", "labels": LABELS}).json()["id"]
    if rows:
        content = "\n".join(
            json.dumps({"text": text, **({} if done is None else {"labels": done})}) for text, done in rows
        )
        answer = client.post(f"/projects/{project}/documents?format=jsonl", content=content, headers=TEXT)
        assert answer.json()["added"] == len(rows), answer.json()
    return f"/projects/{project}"


def settled(client, at, most=30):
    """The project once nothing is being learned."""
    for _ in range(most * 20):
        found = client.get(at).json()
        if not found["state"]["working"]:
            return found
        time.sleep(0.05)
    raise AssertionError("still learning")


@pytest.mark.parametrize(
    ("form", "content", "texts"),
    [
        ("csv", 'id,text,labels\n7,"a, b",oil|weather\n8,c,\n', [("a, b", ["oil", "weather"]), ("c", [])]),
        ("csv", "text\nonly this\n", [("only this", None)]),
        ("jsonl", '{"text": "a", "labels": ["oil"]}\n"b"\n', [("a", ["oil"]), ("b", None)]),
        ("txt", "one\ntwo\n", [("one", None), ("two", None)]),
    ],
)
def test_files_are_read(start, form, content, texts):
    client = start()
    at = made(client)
    client.post(f"{at}/documents?format={form}", content=content.encode(), headers=TEXT)
    found = client.get(f"{at}/documents").json()
    wanted = [(text, "open" if labels is None else "done", labels or []) for text, labels in texts]
    assert [(one["text"], one["status"], one["labels"]) for one in found] == wanted


def test_rows_that_cannot_be_used_are_told(start):
    client = start()
    at = made(client)
    content = '{"text": "a", "labels": ["coal"]}\n{"text": " "}\n{"text": "fine"}\nbroken\n'
    told = client.post(f"{at}/documents?format=jsonl", content=content, headers=TEXT).json()
    assert told["added"] == 1
    assert "3 of 4 rows cannot be used and were left out" in told["notes"][0]
    assert "unknown label 'coal'" in told["notes"][0]
    refused = client.post(f"{at}/documents?format=csv", content="body\nx\n", headers=TEXT)
    assert (refused.status_code, "no column 'text'" in refused.json()["error"]) == (422, True)
    assert client.post(f"{at}/documents", content=b"\xff\xfe\xfd", headers=TEXT).status_code == 422


def test_answers_undo_and_skip(start):
    client = start()
    at = made(client, [("crude oil", None), ("rain", None)])
    assert client.put(f"{at}/documents/0", json={"status": "done", "labels": ["oil"]}).json()["counts"]["done"] == 1
    assert client.put(f"{at}/documents/1", json={"status": "skipped"}).json()["status"] == "skipped"
    assert client.get(f"{at}/next").json()["document"] is None
    assert client.post(f"{at}/undo").json()["document"]["place"] == 1
    assert client.post(f"{at}/undo").json()["document"] | {"text": ""} == {
        "place": 0, "id": "1", "text": "", "status": "open", "labels": []}  # fmt: skip
    assert client.post(f"{at}/undo").json()["document"] is None
    assert client.put(f"{at}/documents/0", json={"status": "done", "labels": ["coal"]}).status_code == 404
    assert client.put(f"{at}/documents/9", json={"status": "done"}).status_code == 404


def test_the_next_document_comes_with_a_proposal_and_a_reason(start):
    client = start()
    at = made(client, [(text, None) for text, _ in ROWS] + [("oil and rain or sun", None)])
    settled(client, at)
    found = client.get(f"{at}/next").json()
    assert found["reasons"]
    assert set(found["prediction"]["probabilities"]) == set(LABELS)
    likely = client.get(f"{at}/next", params={"label": "billing problem"}).json()
    assert likely["document"]["text"] == "a wrong charge"
    after = client.get(f"{at}/next", params={"after": found["document"]["place"]}).json()
    assert after["document"]["place"] != found["document"]["place"]


def test_a_new_label_opens_what_nobody_was_asked_about(start):
    client = start()
    at = made(client, [("crude oil", ["oil"]), ("rain", None)])
    told = client.put(f"{at}/labels", json={"labels": LABELS | {"snow": None}}).json()
    assert (told["counts"]["open"], "nobody was asked about snow" in told["note"]) == (2, True)
    assert client.get(f"{at}/documents").json()[0]["labels"] == ["oil"]  # proposed again
    told = client.put(f"{at}/labels", json={"labels": {"weather": None}}).json()
    assert told["note"] is None
    assert client.get(f"{at}/documents").json()[0]["labels"] == []
    client.put(f"{at}/labels", json={"labels": LABELS})
    assert client.get(f"{at}/documents").json()[0]["labels"] == ["oil"]  # nothing was forgotten


def test_it_learns_after_a_handful_and_again(start):
    client = start(described=SetScoreClassifier(backbone="setscore-mini"), served={})
    at = made(client, [(f"{text} number {n}", labels) for n in range(3) for text, labels in ROWS])
    first = settled(client, at)
    assert (first["state"]["learned"], first["state"]["error"]) == (12, None)
    more = [{"text": "oil again", "labels": ["oil"]}] * 5
    client.post(f"{at}/documents?format=jsonl", content="\n".join(map(json.dumps, more)), headers=TEXT)
    assert settled(client, at)["state"]["learned"] == 17
    found = client.get(f"{at}/learning").json()
    assert [point["documents"] for point in found["curve"]] == [12, 17]
    last = found["last"]
    assert (
        last["scores"]["micro_f1"]["low"] <= last["scores"]["micro_f1"]["value"] <= last["scores"]["micro_f1"]["high"]
    )
    assert [row["label"] for row in last["labels"]] == list(LABELS)
    gaps = [abs(one["probability"] - one["gold"]) for one in last["disagreements"]]
    assert gaps == sorted(gaps, reverse=True)


def test_what_is_exported_can_be_imported_and_calibrated(start, tmp_path):
    client = start()
    rows = [(f"{text}, “{n}”,\nnext line 🙂", labels) for n in range(3) for text, labels in ROWS]
    at = made(client, rows)
    for form in ("csv", "jsonl"):
        file = tmp_path / f"export.{form}"
        file.write_bytes(client.get(f"{at}/export?format={form}").content)
        other = made(client)
        client.post(f"{other}/documents?format={form}", content=file.read_bytes(), headers=TEXT)
        found = client.get(f"{other}/documents").json()
        assert [(one["text"], one["labels"]) for one in found] == rows
        labels = ",".join(LABELS)
        code, out, err = invoke("calibrate", "--file", file, "--labels", labels)
        assert (code, "fitted on 12 documents" in out) == (0, True), err


def test_projects_are_apart_and_end(start):
    client = start()
    one, other = made(client, [("a", None)]), made(client, [("b", None), ("c", None)])
    assert [p["counts"]["open"] for p in client.get("/projects").json()] == [1, 2]
    assert client.delete(one).status_code == 204
    assert client.get(one).status_code == 404
    assert client.get(f"{other}/documents").json()[0]["text"] == "b"
    assert client.get("/projects/000000000000").status_code == 404
    assert client.get("/projects/..%2f..").status_code in (404, 422)


def test_a_file_of_another_format_is_refused(tmp_path):
    path = tmp_path / "projects.sqlite"
    Projects(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(DataFileError, match="has the format 99; this version of SetScore reads 1"):
        Projects(path)
    (tmp_path / "text").write_text("no database, but long enough to look like one" * 10)
    with pytest.raises(DataFileError, match="cannot be opened"):
        Projects(tmp_path / "text")


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["done", "skipped", "open"])), max_size=12))
def test_undo_takes_back_every_answer_in_turn(tmp_path_factory, said):
    projects = Projects(tmp_path_factory.mktemp("undo") / "p.sqlite")
    project = projects.create("p", LabelSet.of(LABELS)).id
    projects.add(project, [(str(n), f"text {n}", None) for n in range(4)])
    seen = [projects.entries(project)]
    for place, status in said:
        projects.answer(project, place, status, ["oil"] if status == "done" else [])
        seen.append(projects.entries(project))
    for before in reversed(seen[:-1]):
        assert projects.undo(project) is not None
        assert projects.entries(project) == before
    assert projects.undo(project) is None
    projects.close()


ANSWERING = """
import sys
from pathlib import Path
from setscore import LabelSet
from setscore.server.projects import Projects
projects = Projects(Path(sys.argv[1]))
project = projects.create("p", LabelSet.of(["oil"])).id
projects.add(project, [(str(n), "text", None) for n in range(5000)])
for place in range(5000):
    projects.answer(project, place, "done", ["oil"])
    sys.stdout.write(f"{place}\\n")
    sys.stdout.flush()
"""


def test_what_was_answered_survives_a_kill(tmp_path):
    path = tmp_path / "p.sqlite"
    process = subprocess.Popen([sys.executable, "-c", ANSWERING, path], stdout=subprocess.PIPE, text=True)
    for _ in range(25):
        last = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    last = max([last, *map(int, process.stdout.read().split())])
    process.stdout.close()
    projects = Projects(path)
    project = projects.all()[0].id
    done = [entry.place for entry in projects.entries(project, "done")]
    assert done[: last + 1] == list(range(last + 1))
    projects.close()


def test_cross_validation_never_asks_a_classifier_about_what_it_was_fitted_on():
    seen = []

    class Watched(SetScoreClassifier):
        def fit(self, X, y=None, *, progress=None):
            self.fitted_on = list(X)
            return super().fit(X, y)

        def classify(self, X, *, candidates=None, progress=None):
            assert not set(self.fitted_on) & set(X)
            seen.extend(X)
            return super().classify(X)

    texts = [f"{text} {n}" for n in range(4) for text, _ in ROWS]
    gold = LabelSet.of(LABELS).indicator([labels for _ in range(4) for _, labels in ROWS])
    probabilities, decisions = cross_validate(lambda: Watched(LABELS, backbone=FakeBackbone()), texts, gold)
    assert sorted(seen) == sorted(texts)
    assert probabilities.shape == decisions.shape == gold.shape


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"gold": 3, "f1": 0.9, "precision": 1, "recall": 1}, "7 more examples"),
        ({"gold": 9, "f1": 0.1, "precision": 1, "recall": 1}, "1 more example"),
        ({"gold": 20, "f1": 0.9, "precision": 0.9, "recall": 0.9}, ""),
        ({"gold": 20, "f1": 0.5, "precision": 0.4, "recall": 0.9}, "is predicted too often"),
        ({"gold": 20, "f1": 0.5, "precision": 0.9, "recall": 0.4}, "is missed too often"),
    ],
)
def test_what_a_label_needs(row, told):
    assert needs(row).startswith(told)
    assert bool(needs(row)) == bool(told)
