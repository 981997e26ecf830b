"""Projects: documents, and what people said about them. Kept in SQLite at once, so that nothing is lost."""

import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setscore.errors import DataFileError, counted
from setscore.records import Label, LabelSet
from setscore.server.errors import unknown

FORMAT = 1  # SQLite's user_version
OPEN, DONE, SKIPPED = "open", "done", "skipped"
STATUSES = (OPEN, DONE, SKIPPED)
SCHEMA = """
CREATE TABLE projects (id TEXT PRIMARY KEY, name TEXT NOT NULL, created REAL NOT NULL, labels TEXT NOT NULL);
CREATE TABLE documents (
    project TEXT NOT NULL REFERENCES projects ON DELETE CASCADE, place INTEGER NOT NULL, id TEXT NOT NULL,
    text TEXT NOT NULL, status TEXT NOT NULL, labels TEXT NOT NULL, PRIMARY KEY (project, place)
);
CREATE INDEX by_status ON documents (project, status);
CREATE TABLE history (
    number INTEGER PRIMARY KEY AUTOINCREMENT, project TEXT NOT NULL REFERENCES projects ON DELETE CASCADE,
    place INTEGER NOT NULL, status TEXT NOT NULL, labels TEXT NOT NULL
);
CREATE TABLE fits (
    project TEXT NOT NULL REFERENCES projects ON DELETE CASCADE, at REAL NOT NULL, documents INTEGER NOT NULL,
    measured TEXT NOT NULL, classifier BLOB NOT NULL
);
"""


@dataclass(frozen=True)
class Project:
    """A name and an inventory; documents by status."""

    id: str
    name: str
    labels: LabelSet
    counts: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        labels = [{"name": label.name, "description": label.description} for label in self.labels.labels]
        return {"id": self.id, "name": self.name, "labels": labels, "counts": dict(self.counts)}


@dataclass(frozen=True)
class Entry:
    """A document of a project: its place, its id, its text, and what was said about it."""

    place: int
    id: str
    text: str
    status: str
    labels: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"labels": list(self.labels)}


@dataclass(frozen=True)
class Fit:
    """What was measured when a project was learned from, and the classifier as `save` writes it."""

    documents: int
    measured: Mapping[str, Any]
    classifier: bytes


class Projects:
    """All projects in one file. Every change is on the disk before its request is answered."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.execute("PRAGMA foreign_keys = ON")
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self._database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")
                version = FORMAT
        except (sqlite3.Error, OSError) as error:
            raise DataFileError(f"the projects in {path} cannot be opened: {error}.") from error
        if version != FORMAT:
            raise DataFileError(f"{path} has the format {version}; this version of SetScore reads {FORMAT}.")

    def close(self) -> None:
        self._database.close()

    # Projects

    def all(self) -> list[Project]:
        rows = self._rows("SELECT id FROM projects ORDER BY created")
        return [self.get(identifier) for (identifier,) in rows]

    def get(self, identifier: str) -> Project:
        rows = self._rows("SELECT name, labels FROM projects WHERE id = ?", identifier)
        if not rows:
            raise unknown(f"there is no project {identifier[:40]!r}.")
        ((name, labels),) = rows
        found = dict(self._rows("SELECT status, count(*) FROM documents WHERE project = ? GROUP BY status", identifier))
        counts = {status: found.get(status, 0) for status in STATUSES}
        return Project(identifier, name, _inventory(labels), counts)

    def create(self, name: str, labels: LabelSet) -> Project:
        identifier = secrets.token_hex(6)
        with self._change():
            values = (identifier, name, time.time(), json.dumps(labels.plain()))
            self._database.execute("INSERT INTO projects VALUES (?, ?, ?, ?)", values)
        return self.get(identifier)

    def delete(self, identifier: str) -> None:
        self.get(identifier)
        with self._change():
            self._database.execute("DELETE FROM projects WHERE id = ?", (identifier,))

    def relabel(self, identifier: str, labels: LabelSet) -> str | None:
        """Another inventory. Documents that nobody asked about a new label are open again; a sentence says so."""
        before = self.get(identifier)
        new = set(labels.names) - set(before.labels.names)
        with self._change():
            self._database.execute(
                "UPDATE projects SET labels = ? WHERE id = ?", (json.dumps(labels.plain()), identifier)
            )
            if not new:
                return None
            again = self._database.execute(
                "UPDATE documents SET status = ? WHERE project = ? AND status = ?", (OPEN, identifier, DONE)
            ).rowcount
            self._database.execute("DELETE FROM history WHERE project = ?", (identifier,))
        if not again:
            return None
        return (
            f"{counted(again, 'document')} must be looked at again, because nobody was asked about"
            f" {', '.join(sorted(new))}. What was said before is proposed."
        )

    # Documents

    def add(self, identifier: str, entries: Iterable[tuple[str, str, Sequence[str] | None]]) -> int:
        """Documents as (id, text, labels); those with labels are done. How many were added."""
        self.get(identifier)
        with self._change():
            ((last,),) = self._rows("SELECT coalesce(max(place), -1) FROM documents WHERE project = ?", identifier)
            rows = [
                (identifier, place, name, text, OPEN if labels is None else DONE, json.dumps(list(labels or ())))
                for place, (name, text, labels) in enumerate(entries, start=last + 1)
            ]
            self._database.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)", rows)
        return len(rows)

    def entries(
        self, identifier: str, status: str | None = None, *, label: str | None = None, start: int = 0, most: int = -1
    ) -> list[Entry]:
        """Documents in their order, perhaps those of one status or with one label."""
        where, values = "", list[Any]()
        if status is not None:
            where, values = where + " AND status = ?", [*values, status]
        if label is not None:
            where += " AND EXISTS (SELECT 1 FROM json_each(documents.labels) WHERE value = ?)"
            values.append(label)
        known = set(self.get(identifier).labels.names)
        rows = self._rows(
            f"SELECT place, id, text, status, labels FROM documents WHERE project = ? {where}"
            " ORDER BY place LIMIT ? OFFSET ?",
            identifier,
            *values,
            most,
            start,
        )
        return [_entry(row, known) for row in rows]

    def entry(self, identifier: str, place: int) -> Entry:
        rows = self._rows(
            "SELECT place, id, text, status, labels FROM documents WHERE project = ? AND place = ?", identifier, place
        )
        if not rows:
            raise unknown(f"project {identifier[:40]!r} has no document {place}.")
        return _entry(rows[0], set(self.get(identifier).labels.names))

    def answer(self, identifier: str, place: int, status: str, labels: Sequence[str]) -> Entry:
        """What a person says about a document. What stood there before is kept for `undo`."""
        with self._change():
            before = self.entry(identifier, place)
            self._database.execute(
                "INSERT INTO history (project, place, status, labels) VALUES (?, ?, ?, ?)",
                (identifier, place, before.status, json.dumps(before.labels)),
            )
            self._write(identifier, place, status, json.dumps(list(labels)))
        return self.entry(identifier, place)

    def undo(self, identifier: str) -> Entry | None:
        """Takes the last answer back; None where there is none."""
        with self._change():
            rows = self._rows(
                "SELECT number, place, status, labels FROM history WHERE project = ? ORDER BY number DESC LIMIT 1",
                identifier,
            )
            if not rows:
                return None
            ((number, place, status, labels),) = rows
            self._database.execute("DELETE FROM history WHERE number = ?", (number,))
            self._write(identifier, place, status, labels)
        return self.entry(identifier, place)

    # What was learned

    def add_fit(self, identifier: str, fit: Fit) -> None:
        with self._change():
            values = (identifier, time.time(), fit.documents, json.dumps(fit.measured), fit.classifier)
            self._database.execute("INSERT INTO fits VALUES (?, ?, ?, ?, ?)", values)

    def last_fit(self, identifier: str) -> Fit | None:
        rows = self._rows(
            "SELECT documents, measured, classifier FROM fits WHERE project = ? ORDER BY rowid DESC LIMIT 1", identifier
        )
        return Fit(rows[0][0], json.loads(rows[0][1]), rows[0][2]) if rows else None

    def curve(self, identifier: str) -> list[dict[str, Any]]:
        """The measures of every fit, the first one first."""
        rows = self._rows("SELECT documents, measured FROM fits WHERE project = ? ORDER BY rowid", identifier)
        return [{"documents": documents, **json.loads(measured)["scores"]} for documents, measured in rows]

    def _write(self, identifier: str, place: int, status: str, labels: str) -> None:
        self._database.execute(
            "UPDATE documents SET status = ?, labels = ? WHERE project = ? AND place = ?",
            (status, labels, identifier, place),
        )

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(query, values).fetchall()

    @contextmanager
    def _change(self) -> Iterator[None]:
        """One transaction: all of it, or nothing."""
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")


def _inventory(plain: str) -> LabelSet:
    return LabelSet(tuple(Label(name, text) for name, text in json.loads(plain).items()))


def _entry(row: tuple[Any, ...], known: set[str]) -> Entry:
    """Labels that are no longer in the inventory are left out, not forgotten: they come back with their label."""
    place, identifier, text, status, labels = row
    return Entry(place, identifier, text, status, tuple(name for name in json.loads(labels) if name in known))
