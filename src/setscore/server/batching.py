"""Requests of several clients, asked together.

Documents wait in line; whenever the model is free, a batch is taken: one document of each request in turn, so that a
large request does not keep a small one waiting, until the batch has about as many tokens as it may. While the model is
idle, the first request waits a few milliseconds for others.

Documents with the same labels are asked in one call of `SetScoreClassifier.classify`, those with others in the next. An
answer does not depend on what shares its batch: so an answer is that of the Python interface, whoever else asks.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from setscore.classifier import SetScoreClassifier
from setscore.errors import counted
from setscore.predictions import Prediction
from setscore.records import Document, LabelSet
from setscore.server.errors import Refused
from setscore.server.metrics import Metrics
from setscore.server.settings import Limits

CHARACTERS_OF_A_TOKEN = 4
QUESTION = 12  # tokens of a question beside its label
READ = 9600  # characters of a document that are read at most, about, whatever it has
PATIENT_SHARE = 4  # what can wait gets this part of a batch, so that nothing behind it waits long


class Job:
    """Documents of one request, in the order asked."""

    def __init__(self, classifier: SetScoreClassifier, documents: Sequence[Document]) -> None:
        self.classifier = classifier
        self.documents = [replace(one, id=one.id or str(place)) for place, one in enumerate(documents)]
        self.found: list[Prediction | None] = [None] * len(documents)
        self.waiting = deque(range(len(documents)))
        self.left = len(documents)
        self.done: asyncio.Future[list[Prediction]] = asyncio.get_running_loop().create_future()
        labels = LabelSet.of(classifier.classes_.tolist() if classifier.labels is None else classifier.labels)
        self._questions = sum(len(text) // CHARACTERS_OF_A_TOKEN + QUESTION for text in labels.texts)
        self._each = self._questions / len(labels)

    def tokens(self, place: int) -> float:
        """About how many tokens a document and its questions have."""
        document = self.documents[place]
        asked = self._questions if document.candidates is None else self._each * len(document.candidates)
        return min(len(document.text), READ) / CHARACTERS_OF_A_TOKEN + asked

    def put(self, place: int, prediction: Prediction) -> None:
        self.found[place] = prediction
        self.left -= 1
        if self.left == 0 and not self.done.done():
            self.done.set_result([one for one in self.found if one is not None])

    def fail(self, error: Exception) -> None:
        self.waiting.clear()
        if not self.done.done():
            self.done.set_exception(error)


Place = tuple[Job, int]  # a document of a job


class Batcher:
    """The line before the model, and the one thread that asks it."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.metrics = limits, Metrics(lambda: self.waiting)
        self._lines: tuple[deque[Job], deque[Job]] = (
            deque(),
            deque(),
        )  # of those that wait, and of the patient
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._arrived = asyncio.Event()
        self._rate = 20.0  # documents a second, as lately seen
        self._runner: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Documents in line, without the patient ones."""
        return sum(len(job.waiting) for job in self._lines[0])

    def start(self) -> None:
        self._runner = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """After the last request was answered."""
        if self._runner is not None:
            self._runner.cancel()
            with suppress(asyncio.CancelledError):
                await self._runner
        self._thread.shutdown()

    async def classify(
        self, classifier: SetScoreClassifier, documents: Sequence[Document], *, patient: bool = False
    ) -> list[Prediction]:
        """Predictions in the order of the documents. Whoever is cancelled while waiting leaves the line.

        `patient` is for work that nobody waits for: it has no place in the line, and is done beside other work.
        """
        if not documents:
            return []
        if not patient and self.waiting + len(documents) > self.limits.waiting:
            raise Refused(
                429,
                "overloaded",
                f"{counted(self.waiting, 'document')} wait already, and {self.limits.waiting} may. Come again later.",
                retry_after=self.waiting / self._rate,
            )
        job = Job(classifier, documents)
        self._lines[patient].append(job)
        self._arrived.set()
        try:
            return await job.done
        except asyncio.CancelledError:
            self.metrics.abandoned.inc(len(job.waiting))
            job.waiting.clear()
            raise

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not any(self._lines):
                self._arrived.clear()
                await self._arrived.wait()
                await asyncio.sleep(self.limits.patience)
            batch = self._take()
            if not batch:
                continue
            begun = time.perf_counter()
            answers = await loop.run_in_executor(self._thread, _answers, batch)
            self._count(batch, time.perf_counter() - begun)
            for (job, place), answer in zip(batch, answers, strict=True):
                if isinstance(answer, Prediction):
                    job.put(place, answer)
                else:
                    job.fail(answer)

    def _take(self) -> list[Place]:
        """The next batch: a document of each job in turn."""
        batch: list[Place] = []
        room = float(self.limits.tokens)
        for line, share in zip(self._lines, (1, PATIENT_SHARE), strict=True):
            room = min(room, self.limits.tokens / share)
            while line and room > 0:
                job = line.popleft()
                if not job.waiting:  # its client has left, or it has failed
                    continue
                place = job.waiting.popleft()
                batch.append((job, place))
                room -= job.tokens(place)
                if job.waiting:
                    line.append(job)
        return batch

    def _count(self, batch: Sequence[Place], seconds: float) -> None:
        self._rate += 0.2 * (len(batch) / max(seconds, 1e-6) - self._rate)
        self.metrics.documents.inc(len(batch))
        self.metrics.batches.observe(len(batch))
        self.metrics.sharing.observe(len({id(job) for job, _ in batch}))
        self.metrics.model_seconds.inc(seconds)


def _answers(batch: Sequence[Place]) -> list[Prediction | Exception]:
    """What is found for each document; for all that were asked in one call, the error if that fails."""
    answers: list[Prediction | Exception] = [RuntimeError("not asked")] * len(batch)
    for numbers in _alike(batch):
        classifier = batch[numbers[0]][0].classifier
        try:
            found: Iterable[Prediction | Exception] = classifier.classify(
                [batch[number][0].documents[batch[number][1]] for number in numbers]
            )
        except Exception as error:
            found = [error] * len(numbers)
        for number, answer in zip(numbers, found, strict=True):
            answers[number] = answer
    return answers


def _alike(batch: Sequence[Place]) -> list[list[int]]:
    """Numbers of documents that are asked the same questions."""
    groups: dict[tuple[int, tuple[str, ...] | None], list[int]] = {}
    for number, (job, place) in enumerate(batch):
        groups.setdefault((id(job.classifier), job.documents[place].candidates), []).append(number)
    return list(groups.values())
