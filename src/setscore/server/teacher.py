"""Keeps a project's classifier and its next questions up to date while people answer.

The model is asked through the line that requests wait in, behind them; its answers are kept in a store, so that fitting
and suggesting ask nothing. That work has one thread of its own.
"""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from setscore.classifier import SetScoreClassifier
from setscore.errors import SetScoreError
from setscore.predictions import Prediction
from setscore.records import Document, LabelSet
from setscore.server import learning
from setscore.server.projects import DONE, OPEN, Entry, Projects
from setscore.server.service import Service
from setscore.store import MemoryStore
from setscore.suggesting import Suggestion

HANDFUL = 5  # answers after which a project is learned from again
AHEAD = 20  # documents that are suggested at a time
LOOKED_AT = 300  # open documents among which the next ones are found
log = logging.getLogger("setscore.server")


@dataclass
class Pupil:
    """What is known of one project while the server runs."""

    classifier: SetScoreClassifier | None = None
    labels: LabelSet | None = None
    learned: int = 0  # answers that the classifier was fitted on
    wanted: bool = False  # whether to learn although few answers are new
    changed: bool = False  # whether something has changed since work began
    ahead: dict[int, Suggestion] = field(default_factory=dict)  # by place, the most useful first
    proposals: dict[int, Prediction] = field(default_factory=dict)  # by place, of open documents
    working: asyncio.Task[None] | None = None
    error: str | None = None


class Teacher:
    """Learns in the background, one project after the other."""

    def __init__(self, service: Service, projects: Projects) -> None:
        self._service, self._projects = service, projects
        self._pupils: dict[str, Pupil] = {}
        self._store = MemoryStore()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="teacher")

    def pupil(self, identifier: str) -> Pupil:
        """The state of a project; its last classifier comes from the file of projects."""
        project = self._projects.get(identifier)
        if identifier not in self._pupils:
            self._pupils[identifier] = pupil = Pupil(labels=project.labels)
            fit = self._projects.last_fit(identifier)
            if fit is not None:
                try:
                    found = learning.loaded(fit.classifier)
                    if found.labels_ == project.labels:
                        pupil.classifier, pupil.learned = found.set_params(store=self._store), fit.documents
                except SetScoreError as error:
                    pupil.error = str(error)
        pupil = self._pupils[identifier]
        if pupil.labels != project.labels:  # they were edited
            self._pupils[identifier] = pupil = Pupil(labels=project.labels, working=pupil.working)
        return pupil

    def forget(self, identifier: str) -> None:
        pupil = self._pupils.pop(identifier, None)
        if pupil is not None and pupil.working is not None:
            pupil.working.cancel()

    def classifier(self, identifier: str) -> SetScoreClassifier:
        """The fitted one, or before that one that was fitted on nothing."""
        pupil = self.pupil(identifier)
        return pupil.classifier or self._unfitted(self._projects.get(identifier).labels)

    def poke(self, identifier: str, *, learn: bool = False) -> None:
        """Something has changed: works in the background if there is enough to do."""
        pupil = self.pupil(identifier)
        pupil.wanted, pupil.changed = pupil.wanted or learn, True
        if pupil.working is None or pupil.working.done():
            pupil.working = asyncio.get_running_loop().create_task(self._work(identifier))

    def state(self, identifier: str) -> dict[str, Any]:
        """For the page: whether work is going on, and what it works with."""
        pupil = self.pupil(identifier)
        working = pupil.working is not None and not pupil.working.done()
        return {"working": working, "learned": pupil.learned, "least": learning.LEAST, "error": pupil.error}

    def stop(self) -> None:
        for identifier in list(self._pupils):
            self.forget(identifier)
        self._thread.shutdown(cancel_futures=True)

    def _unfitted(self, labels: LabelSet) -> SetScoreClassifier:
        params = self._service.settings.described.get_params(deep=False)
        return SetScoreClassifier(**{**params, "labels": labels, "store": self._store})

    async def _work(self, identifier: str) -> None:
        """Learns if there is enough that is new, then looks for the next documents; again if more came meanwhile."""
        try:
            while self.pupil(identifier).changed:
                self.pupil(identifier).changed = False
                await self._learn(identifier)
                await self._look_ahead(identifier)
            self.pupil(identifier).error = None
        except SetScoreError as error:
            self.pupil(identifier).error = str(error)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("learning failed")
            self.pupil(identifier).error = "learning failed; the server's log says more."

    async def _learn(self, identifier: str) -> None:
        """Fits and measures, if there are answers enough that it has not learned from."""
        pupil, labels = self.pupil(identifier), self._projects.get(identifier).labels
        done = self._projects.entries(identifier, DONE)
        new = abs(len(done) - pupil.learned)
        if len(done) < learning.LEAST or not (new >= HANDFUL or pupil.wanted or pupil.classifier is None):
            return
        pupil.wanted = False
        await self._ask(self._unfitted(labels), done)
        loop = asyncio.get_running_loop()
        fit = await loop.run_in_executor(self._thread, learning.learn, lambda: self._unfitted(labels), labels, done)
        if self._projects.get(identifier).labels != labels:  # they were edited meanwhile
            return
        self._projects.add_fit(identifier, fit)
        pupil = self.pupil(identifier)
        pupil.classifier, pupil.learned = learning.loaded(fit.classifier).set_params(store=self._store), len(done)

    async def _look_ahead(self, identifier: str) -> None:
        """Which of the open documents come next; of very many, a sample is looked at."""
        pupil = self.pupil(identifier)
        waiting = self._projects.entries(identifier, OPEN)
        if len(waiting) > LOOKED_AT:  # in an order that is no order of the file, and always the same
            waiting = sorted(waiting, key=lambda entry: crc32(str(entry.place).encode()))[:LOOKED_AT]
        classifier = self.classifier(identifier)
        found = await self._ask(classifier, waiting)
        pupil.proposals = {entry.place: one for entry, one in zip(waiting, found, strict=True)}
        if waiting:
            loop = asyncio.get_running_loop()
            next_ones = await loop.run_in_executor(self._thread, learning.suggested, classifier, waiting, AHEAD)
            pupil.ahead = dict(next_ones)

    async def _ask(self, classifier: SetScoreClassifier, entries: Sequence[Entry]) -> list[Prediction]:
        documents = [Document(entry.text, entry.id) for entry in entries]
        return await self._service.batcher.classify(classifier, documents, patient=True)
