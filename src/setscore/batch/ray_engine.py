"""Shards scored by actors of Ray Data: here, or on a cluster whose machines all see the input and the output.

Only descriptions of shards travel. An actor reads its rows, and writes their file and receipt, as any engine does;
so a driver or an actor that dies costs the shards it was at, and whoever goes on sees from the receipts what is done.
"""

import importlib
import json
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from setscore.backbones.host import THREADS, cores
from setscore.batch.engines import DEATHS
from setscore.batch.folders import Seal, folder_at
from setscore.batch.plan import Shard
from setscore.batch.records import Receipt, attempt_name
from setscore.batch.scoring import Job, ShardScorer, Tell
from setscore.errors import MissingExtraError, SetScoreError

THREADS_OF_RAY = ("StreamingExecutor", "ray-data-metadata")  # how their names begin
PATIENCE = 60.0  # seconds for one of them to end


@dataclass(frozen=True)
class RayEngine:
    """Ray Data.

    address  of a cluster, "auto" for the one that this machine belongs to; None starts one for this run
    workers  actors, each with a model of its own; None for one a CPU but one, or one a GPU
    gpus     that all actors share
    """

    address: str | None = None
    workers: int | None = None
    gpus: float = 0

    def __call__(self, job: Job, shards: Sequence[Shard], tell: Tell) -> Iterator[Receipt]:
        """The receipts of all shards, as they come."""
        if not shards:
            return
        with self._running() as ray:
            for row in self._scored(ray, job, shards).iter_rows():
                content = json.loads(row["answer"])
                if isinstance(content, str):
                    raise SetScoreError(content)
                receipt = Receipt(**{**content, "seal": Seal(**content["seal"])})
                tell(receipt.rows)
                yield receipt

    def _scored(self, ray: Any, job: Job, shards: Sequence[Shard]) -> Any:
        data = importlib.import_module("ray.data")
        workers, threads = self._shares(ray, len(shards))
        described = [{"shard": json.dumps(asdict(shard))} for shard in shards]
        # A block a shard: Ray would put a few thousand small rows into one block, and one actor would do all the work.
        blocks = data.from_items(described, override_num_blocks=len(shards))
        return blocks.map_batches(
            _Worker,
            fn_constructor_args=(job, threads),
            batch_size=1,
            compute=data.ActorPoolStrategy(size=workers),
            num_cpus=threads if not self.gpus else 1,
            num_gpus=self.gpus / workers if self.gpus else None,
        )

    def _shares(self, ray: Any, shards: int) -> tuple[int, int]:
        """How many actors, and how many threads each: less than there is, as actors that ask for more wait for ever."""
        there = ray.cluster_resources()
        cpus, gpus = int(there.get("CPU", 0)), there.get("GPU", 0)
        if self.gpus > gpus:
            raise SetScoreError(f"{self.gpus:g} GPUs were asked for, Ray has {gpus:g}. Lower --gpus.")
        most = max(1, cpus - 1)  # a slot stays free, for an actor that takes another one's place
        workers = self.workers or (int(self.gpus) if self.gpus >= 1 else most)
        if workers > most:
            raise SetScoreError(
                f"{workers} workers were asked for; Ray has {cpus} CPUs, and one stays free for a worker that takes"
                f" another one's place. Use --workers {most} or fewer."
            )
        workers = min(workers, shards)
        smallest = min(int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"])
        slots = cores() if self.address is None else most
        return workers, max(1, min(slots // workers, smallest))

    @contextmanager
    def _running(self) -> Iterator[Any]:
        """Ray, started and ended here unless it runs already. Errors of ours come out as they were raised."""
        try:
            ray = importlib.import_module("ray")
            importlib.import_module("ray.data")
        except ImportError as error:
            raise MissingExtraError("--engine ray", "ray") from error
        begun = not ray.is_initialized()
        if begun:
            self._begin(ray)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        context.execution_no_progress_timeout_s = -1  # a shard of a large model may take an hour
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what goes wrong is told by us
        try:
            yield ray
        except ray.exceptions.RayError as error:
            said = str(error).strip().splitlines()
            raise SetScoreError(f"Ray gave up: {said[0]} … {said[-1]} Run it again: what is done is kept.") from error
        finally:
            if begun:
                _wait_for_executors()
                ray.shutdown()

    def _begin(self, ray: Any) -> None:
        quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
        if self.address is not None:
            try:
                ray.init(address=self.address, **quiet)
            except (ConnectionError, ValueError) as error:
                raise SetScoreError(f"no Ray cluster answers at {self.address}: {error}") from error
            return
        # One more than work, so that a worker which takes another one's place finds a slot.
        count = max(cores(), (self.workers or 0)) + 1
        ray.init(num_cpus=count, num_gpus=self.gpus or None, include_dashboard=False, **quiet)


def _wait_for_executors() -> None:
    """Ray Data waits seconds for its threads; one that still speaks when Ray shuts down ends the whole process."""
    for thread in threading.enumerate():
        if thread.name.startswith(THREADS_OF_RAY):
            thread.join(PATIENCE)


class _Worker:
    """An actor: Ray Data makes one for each worker and hands it a shard at a time."""

    def __init__(self, job: Job, threads: int) -> None:
        # Every model would take all cores of its machine, and get in the way of the others.
        os.environ[THREADS] = str(threads)
        self._score, self._folder = ShardScorer(job), folder_at(job.folder)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        shards = [Shard(**json.loads(str(one))) for one in batch["shard"]]
        return {"answer": [json.dumps(self._answer(shard)) for shard in shards]}

    def _answer(self, shard: Shard) -> dict[str, Any] | str:
        """The receipt, or the message of an error of ours: Ray wraps what is raised into many pages."""
        try:
            return asdict(self._scored(shard))
        except SetScoreError as error:
            return str(error)

    def _scored(self, shard: Shard) -> Receipt:
        """Ray replaces an actor that dies for ever. A note on each attempt tells a shard that kills every one."""
        names = [attempt_name(shard.number, attempt) for attempt in range(DEATHS)]
        attempt = next((name for name in names if self._folder.size(name) is None), None)
        if attempt is None:
            raise SetScoreError(
                f"{DEATHS} workers died one after the other over shard {shard.number}, perhaps for want of memory. Use"
                " fewer --workers, or find the row that does it, and run it again: what is done is kept."
            )
        with self._folder.create(attempt):
            pass
        receipt = self._score(shard)
        for name in names[: names.index(attempt) + 1]:
            self._folder.remove(name)
        return receipt
