"""The routes of projects: documents in, answers kept, the next document out, what was learned to take away."""

import asyncio
import csv
import io
import json
from typing import Annotated, Any, Literal

from fastapi import Body, FastAPI, Path, Query, Request
from fastapi.responses import JSONResponse
from pydantic import Field, StrictStr
from starlette.responses import Response

from setscore.datasets import Columns, InputRow, read_stream
from setscore.datasets.dataset import left_out
from setscore.datasets.own import split_names
from setscore.errors import unknown_name
from setscore.records import Document, Label, LabelSet
from setscore.server.errors import Refused, invalid, unknown
from setscore.server.mistakes import IDENTIFIER
from setscore.server.projects import DONE, OPEN, Entry, Project, Projects
from setscore.server.schemas import Labels, Name, Strict
from setscore.server.service import Service
from setscore.server.teacher import Teacher

Identifier = Annotated[str, Path(pattern=IDENTIFIER)]
Place = Annotated[int, Path(ge=0, le=2**31)]
MEDIA = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
PAGE = 100  # documents of one answer


class NewProject(Strict):
    name: Annotated[Name, Field(max_length=200)]
    labels: Labels


class Said(Strict):
    """What a person says about a document."""

    status: Literal["open", "done", "skipped"]
    labels: list[StrictStr] = Field(default_factory=list)


class NewLabels(Strict):
    labels: Labels


def add(app: FastAPI, service: Service, projects: Projects) -> None:
    """All of them."""
    teacher = Teacher(service, projects)
    app.state.teacher = teacher
    service.closing.append(teacher.stop)
    service.closing.append(projects.close)
    _add_projects(app, projects, teacher)
    _add_documents(app, projects, teacher)
    _add_answers(app, service, projects, teacher)
    _add_learning(app, projects, teacher)


def _add_projects(app: FastAPI, projects: Projects, teacher: Teacher) -> None:
    @app.get("/projects")
    def all_projects() -> list[dict[str, Any]]:
        """Every project, the oldest first."""
        return [project.to_dict() for project in projects.all()]

    @app.post("/projects", status_code=201)
    def create(asked: NewProject) -> dict[str, Any]:
        """A project for these labels, without documents."""
        return projects.create(asked.name, _inventory(asked.labels)).to_dict()

    @app.get("/projects/{identifier}")
    async def one(identifier: Identifier) -> dict[str, Any]:
        """A project, and whether something is being learned."""
        project = await asyncio.to_thread(projects.get, identifier)
        return project.to_dict() | {"state": teacher.state(identifier)}

    @app.delete("/projects/{identifier}", status_code=204, response_class=Response)
    async def delete(identifier: Identifier) -> None:
        """Removes a project with everything in it."""
        await asyncio.to_thread(projects.delete, identifier)
        teacher.forget(identifier)

    @app.put("/projects/{identifier}/labels")
    async def relabel(identifier: Identifier, asked: NewLabels) -> dict[str, Any]:
        """Another inventory; `note` says which documents must be looked at again."""
        note = await asyncio.to_thread(projects.relabel, identifier, _inventory(asked.labels))
        teacher.poke(identifier)
        return projects.get(identifier).to_dict() | {"note": note}


def _add_documents(app: FastAPI, projects: Projects, teacher: Teacher) -> None:
    @app.post(
        "/projects/{identifier}/documents",
        openapi_extra={"requestBody": {"content": {"text/plain": {"schema": {"type": "string", "minLength": 1}}}}},
    )
    async def add_documents(
        request: Request,
        identifier: Identifier,
        form: Annotated[Literal["csv", "tsv", "jsonl", "json", "txt"], Query(alias="format")] = "txt",
        text_column: str = "text",
        labels_column: str = "labels",
    ) -> dict[str, Any]:
        """Documents of a file, whose content is the body. Rows with labels are done; what cannot be read is told."""
        body = await request.body()
        project = await asyncio.to_thread(projects.get, identifier)
        added, notes = await asyncio.to_thread(
            _added, projects, project, body, form=form, text_column=text_column, labels_column=labels_column
        )
        teacher.poke(identifier)
        return {"added": added, "notes": notes, "counts": dict(projects.get(identifier).counts)}

    @app.get("/projects/{identifier}/documents")
    def documents(
        identifier: Identifier,
        status: Literal["open", "done", "skipped"] | None = None,
        label: str | None = None,
        start: Annotated[int, Query(ge=0, le=2**31)] = 0,
    ) -> list[dict[str, Any]]:
        """A hundred documents from the place `start` on, perhaps of one status or with one label."""
        found = projects.entries(identifier, status, label=label, start=start, most=PAGE)
        return [entry.to_dict() for entry in found]

    @app.get(
        "/projects/{identifier}/export",
        response_class=Response,
        responses={200: {"content": {"text/csv": {}, "application/x-ndjson": {}}}},
    )
    def export(
        identifier: Identifier, form: Annotated[Literal["csv", "jsonl"], Query(alias="format")] = "jsonl"
    ) -> Response:
        """Every document that is done, with its labels: what `setscore calibrate --file` reads, and an import here."""
        project, entries = projects.get(identifier), projects.entries(identifier, DONE)
        text = _csv(project, entries) if form == "csv" else _jsonl(entries)
        return _download(text, MEDIA[form], f"{identifier}.{form}")


def _add_answers(app: FastAPI, service: Service, projects: Projects, teacher: Teacher) -> None:
    @app.get("/projects/{identifier}/next")
    async def next_document(
        request: Request, identifier: Identifier, label: str | None = None, after: int | None = None
    ) -> Response:
        """The open document that is most useful to label now, with what the classifier proposes and why it is next."""
        project = await asyncio.to_thread(projects.get, identifier)
        _check_known(project, () if label is None else (label,))
        entry, reasons = await asyncio.to_thread(_next, projects, teacher, identifier, label, after)
        if entry is None:
            return JSONResponse({"document": None, "counts": dict(project.counts)})
        return JSONResponse(await _shown(request, service, teacher, project, entry, reasons))

    @app.get("/projects/{identifier}/documents/{place}")
    async def document(request: Request, identifier: Identifier, place: Place) -> Response:
        """A document with what the classifier proposes."""
        project = await asyncio.to_thread(projects.get, identifier)
        entry = await asyncio.to_thread(projects.entry, identifier, place)
        return JSONResponse(await _shown(request, service, teacher, project, entry, ()))

    @app.put("/projects/{identifier}/documents/{place}")
    async def answer(identifier: Identifier, place: Place, said: Annotated[Said, Body()]) -> dict[str, Any]:
        """What a person says about a document; it is on the disk when this is answered."""
        project = await asyncio.to_thread(projects.get, identifier)
        _check_known(project, said.labels)
        labels = [name for name in project.labels.names if name in set(said.labels)]
        entry = await asyncio.to_thread(projects.answer, identifier, place, said.status, labels)
        teacher.poke(identifier)
        return entry.to_dict() | {"counts": dict(projects.get(identifier).counts)}

    @app.post("/projects/{identifier}/undo")
    async def undo(identifier: Identifier) -> dict[str, Any]:
        """Takes the last answer back; `document` is the one it was about, or null."""
        project = await asyncio.to_thread(projects.get, identifier)
        entry = await asyncio.to_thread(projects.undo, project.id)
        teacher.poke(identifier)
        counts = dict(projects.get(identifier).counts)
        return {"document": None if entry is None else entry.to_dict(), "counts": counts}


def _add_learning(app: FastAPI, projects: Projects, teacher: Teacher) -> None:
    @app.post("/projects/{identifier}/learn", status_code=202)
    async def learn(identifier: Identifier) -> dict[str, Any]:
        """Learns from all answers now, in the background."""
        teacher.poke(identifier, learn=True)
        return teacher.state(identifier)

    @app.get("/projects/{identifier}/learning")
    async def learned(identifier: Identifier) -> dict[str, Any]:
        """What was learned last, how good it is, and how it came to be so."""
        project = await asyncio.to_thread(projects.get, identifier)
        fit = await asyncio.to_thread(projects.last_fit, identifier)
        curve = await asyncio.to_thread(projects.curve, identifier)
        last = None if fit is None else dict(fit.measured) | {"documents": fit.documents}
        return {"state": teacher.state(identifier), "counts": dict(project.counts), "last": last, "curve": curve}

    @app.get(
        "/projects/{identifier}/classifier",
        response_class=Response,
        responses={200: {"content": {"application/zip": {}}}},
    )
    async def classifier(identifier: Identifier) -> Response:
        """The classifier, as `setscore classify --classifier` and `SetScoreClassifier.load` read it."""
        await asyncio.to_thread(projects.get, identifier)
        fit = await asyncio.to_thread(projects.last_fit, identifier)
        if fit is None:
            raise Refused(404, "not_found", "nothing has been learned yet. Label some documents first.")
        return _download(fit.classifier, "application/zip", f"{identifier}.zip")


async def _shown(  # noqa: PLR0917
    request: Request, service: Service, teacher: Teacher, project: Project, entry: Entry, reasons: tuple[str, ...]
) -> dict[str, Any]:
    """A document, what is proposed for it, and why it comes now."""
    classifier = teacher.classifier(project.id)
    (found,) = await service.classify(request, classifier, [Document(entry.text, entry.id)])
    return {
        "document": entry.to_dict(),
        "prediction": found.to_dict(),
        "reasons": list(reasons),
        "counts": dict(project.counts),
        "state": teacher.state(project.id),
    }


def _next(
    projects: Projects, teacher: Teacher, identifier: str, label: str | None, after: int | None
) -> tuple[Entry | None, tuple[str, ...]]:
    """The next open document: one that was suggested; before anything was, in the order of the file."""
    pupil = teacher.pupil(identifier)
    places = [place for place in pupil.ahead if place != after]
    if label is not None:
        likely = {place: one.probabilities.get(label, 0.0) for place, one in pupil.proposals.items() if place != after}
        places = sorted(likely, key=lambda place: -likely[place])
    for place in places:
        entry = projects.entry(identifier, place)
        if entry.status == OPEN:
            reasons = pupil.ahead[place].reasons if place in pupil.ahead else ()
            return entry, reasons
    rest = projects.entries(identifier, OPEN, most=2)
    return next(((entry, ()) for entry in rest if entry.place != after), (rest[0] if rest else None, ()))


def _added(
    projects: Projects, project: Project, body: bytes, *, form: str, text_column: str, labels_column: str
) -> tuple[int, list[str]]:
    """How many documents of a file were added, and notes on rows that were not."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise invalid(f"the file is not UTF-8 ({error.reason} at byte {error.start}). Save it as UTF-8.") from error
    rows = list(read_stream(io.StringIO(text, newline=""), f".{form}", Columns(text_column)))
    problems = {row.number: row.problem for row in rows if row.problem is not None}
    known = frozenset(project.labels.names)
    entries = []
    for row in rows:
        if row.document is None:
            continue
        labels = _labels(row, labels_column, known)
        if labels is not None and (strange := [name for name in labels if name not in known]):
            problems[row.number] = f"has an {unknown_name('label', strange[0], project.labels.names)}"
        else:
            entries.append((row.id, row.document.text, labels))
    notes = [left_out(problems, len(rows))] if problems else []
    if not entries:
        raise invalid(" ".join(["the file holds no documents.", *notes]))
    return projects.add(project.id, entries), notes


def _labels(row: InputRow, column: str, known: frozenset[str]) -> list[str] | None:
    """The labels of a row: none where it has no such column, and an empty list where it says so."""
    given = row.values.get(column)
    if given is None:
        return None
    if isinstance(given, list):
        return [str(name) for name in given]
    return split_names(str(given), known=known)


def _check_known(project: Project, names: Any) -> None:
    if strange := project.labels.unknown(names):
        raise unknown(unknown_name("label", strange[0], project.labels.names))


def _inventory(labels: dict[str, str | None]) -> LabelSet:
    return LabelSet(tuple(Label(name, text) for name, text in labels.items()))


def _jsonl(entries: list[Entry]) -> str:
    rows = ({"id": entry.id, "text": entry.text, "labels": list(entry.labels)} for entry in entries)
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _csv(project: Project, entries: list[Entry]) -> str:
    if barred := next((name for name in project.labels.names if "|" in name), None):
        told = f"the label {barred!r} has | in its name, which stands between labels in CSV. Export JSONL."
        raise Refused(409, "conflict", told)
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(["id", "text", "labels"])
    writer.writerows([entry.id, entry.text, "|".join(entry.labels)] for entry in entries)
    return made.getvalue()


def _download(content: str | bytes, kind: str, name: str) -> Response:
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
