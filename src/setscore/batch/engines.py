"""Who scores the shards: this process, several of this machine, or Ray (`ray_engine`). All write the same files."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import wait as wait_for

from setscore.backbones.host import THREADS, cores
from setscore.batch.plan import Shard
from setscore.batch.records import Receipt
from setscore.batch.scoring import Job, ShardScorer, Tell
from setscore.errors import SetScoreError, counted

Engine = Callable[[Job, Sequence[Shard], Tell], Iterator[Receipt]]
DEATHS = 3  # of workers, one after the other without a shard between them, after which it is no accident


def here(job: Job, shards: Sequence[Shard], tell: Tell) -> Iterator[Receipt]:
    """One shard after the other in this process."""
    score = ShardScorer(job)
    for shard in shards:
        yield score(shard, tell)


def processes(workers: int) -> Engine:
    """Processes of this machine, each with a model of its own and its share of the cores."""
    if workers < 1:
        raise SetScoreError(f"at least 1 worker is needed, got {workers}.")
    return here if workers == 1 else _Processes(workers)


class _Processes:
    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __call__(self, job: Job, shards: Sequence[Shard], tell: Tell) -> Iterator[Receipt]:
        """A worker that dies is replaced, and what it was at is begun again."""
        left = {shard.number: shard for shard in shards}
        deaths = 0
        while left:
            try:
                for receipt in self._pass(job, list(left.values())):
                    del left[receipt.number]
                    deaths = 0
                    tell(receipt.rows)
                    yield receipt
            except BrokenProcessPool as error:
                deaths += 1
                if deaths == DEATHS:
                    raise SetScoreError(
                        f"{DEATHS} workers died one after the other, perhaps for want of memory;"
                        f" {counted(len(left), 'shard')} left. Use fewer --workers and run it again: what is done is"
                        " kept."
                    ) from error

    def _pass(self, job: Job, shards: Sequence[Shard]) -> Iterator[Receipt]:
        """All shards, or as many as are scored until a worker dies."""
        count = min(self.workers, len(shards))
        threads = max(1, cores() // self.workers)
        pool = ProcessPoolExecutor(
            count, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(job, threads)
        )
        try:
            rest = iter(shards)
            running: set[Future[Receipt]] = set()
            for shard in rest:
                running.add(pool.submit(_score, shard))
                if len(running) <= count:  # one waits, so that no worker does
                    continue
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_scorer: ShardScorer | None = None


def _begin(job: Job, threads: int) -> None:
    """What a worker does first. It ends with its parent, or it would go on writing into a folder that others have."""
    global _scorer  # noqa: PLW0603 -- what an initialiser makes has no other place
    os.environ[THREADS] = str(threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _scorer = ShardScorer(job)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        with suppress(OSError):
            wait_for([parent.sentinel])
        os._exit(1)


def _score(shard: Shard) -> Receipt:
    assert _scorer is not None
    return _scorer(shard)
