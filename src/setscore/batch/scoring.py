"""A shard from its rows to its file. Everything that can go wrong with one row stays with that row."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from setscore.batch.folders import folder_at
from setscore.batch.identity import labels_of
from setscore.batch.inputs import Input, Reader
from setscore.batch.layouts import WRITERS, Head
from setscore.batch.plan import RowDigest, Shard
from setscore.batch.records import Receipt, part_name, write_receipt
from setscore.classifier import SetScoreClassifier
from setscore.datasets import InputRow
from setscore.errors import DataFileError, SetScoreError
from setscore.predictions import Prediction
from setscore.records import Document
from setscore.storage import one_line

# A block is scored and forgotten before the next is read. Where it ends depends on its rows alone, so that a shard is
# the same whoever scores it.
BLOCK_QUESTIONS = 8192
BLOCK_CHARACTERS = 2**20
PLAIN = Document("A plain sentence.")  # which every model can read

Tell = Callable[[int], None]  # how many more rows are done


@dataclass(frozen=True)
class Job:
    """What is the same for every shard; whoever scores one is given it."""

    classifier: SetScoreClassifier
    source: Input
    head: Head
    folder: str


@dataclass
class Counts:
    """What is counted of a shard."""

    failed: int = 0
    truncated: int = 0
    dropped: int = 0
    forwards: int = 0


class ShardScorer:
    """Scores shards of a job one after the other."""

    def __init__(self, job: Job) -> None:
        self._job, self._reader, self._folder = job, Reader(job.source), folder_at(job.folder)
        self._block_rows = max(1, BLOCK_QUESTIONS // len(labels_of(job.classifier)))

    def __call__(self, shard: Shard, tell: Tell | None = None) -> Receipt:
        """The shard's file and receipt, written in this order."""
        job, digest, counts = self._job, RowDigest(), Counts()
        form = job.head.layout.form
        with self._folder.create(part_name(shard.number, form)) as file:
            writer = WRITERS[form](file, job.head)
            for block in self._blocks(shard):
                for _, row in block:
                    digest.add(row)
                writer.write(self._predictions(block, counts))
                if tell is not None:
                    tell(len(block))
            writer.close()
            if (str(digest), digest.rows) != (shard.digest, shard.rows):
                raise DataFileError(
                    f"the input changed while it was scored: the rows of shard {shard.number} are not those that were"
                    " there at the start. Run it again on files that stay as they are, with --force."
                )
        receipt = Receipt(
            number=shard.number,
            digest=shard.digest,
            identity=job.head.identity,
            seal=file.seal,
            rows=shard.rows,
            **vars(counts),
        )
        write_receipt(self._folder, receipt)
        return receipt

    def _blocks(self, shard: Shard) -> Iterator[list[tuple[int, InputRow]]]:
        block: list[tuple[int, InputRow]] = []
        characters = 0
        for number, row in self._reader.between(shard.first, shard.stop):
            block.append((number, row))
            characters += 0 if row.document is None else len(row.document.text)
            if len(block) >= self._block_rows or characters >= BLOCK_CHARACTERS:
                yield block
                block, characters = [], 0
        if block:
            yield block

    def _predictions(self, block: Sequence[tuple[int, InputRow]], counts: Counts) -> list[Prediction]:
        found = self._classified([row.document or Document("", row.id) for _, row in block], counts)
        counts.failed += sum(prediction.error is not None for prediction in found)
        return [
            prediction
            if prediction.error is None
            else replace(
                prediction, error=f"{self._job.source.where(number, row)} {row.problem or prediction.error}", id=row.id
            )
            for (number, row), prediction in zip(block, found, strict=True)
        ]

    def _classified(self, documents: Sequence[Document], counts: Counts) -> list[Prediction]:
        """Predictions of a block. A document that breaks its model is parted from the others by halves.

        Where nothing is left of a block, a plain sentence is tried: what breaks that too is no document's fault, and
        stops the batch.
        """
        found: list[Prediction] = []
        waiting = [documents]
        while waiting:
            part = waiting.pop()
            tried = self._tried(part, counts)
            if isinstance(tried, list):
                found += tried
            elif len(part) > 1:
                half = len(part) // 2
                waiting += [part[half:], part[:half]]
            else:
                if all(one.error is not None for one in found) and not isinstance(self._tried([PLAIN]), list):
                    raise tried
                error = f"could not be scored: {type(tried).__name__}: {one_line(tried)}"
                found.append(Prediction(part[0].id, error=error, regime=self._job.classifier.regime))
        return found

    def _tried(self, documents: Sequence[Document], counts: Counts | None = None) -> list[Prediction] | Exception:
        try:
            found = self._job.classifier.classify(documents)
        except SetScoreError:
            raise  # a mistake in what was asked for: no row can do anything about it
        except Exception as error:
            return error
        if counts is not None:
            counts.truncated += int(found.scores.truncated.sum())
            counts.dropped += found.dropped
            counts.forwards += found.scores.forwards
        return list(found)
