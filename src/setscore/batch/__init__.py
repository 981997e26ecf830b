"""Batches: millions of rows from files to files, on one machine or on many, so that nothing is lost or doubled."""

from setscore.batch.engines import Engine, here, processes
from setscore.batch.layouts import Layout
from setscore.batch.running import SHARD_ROWS, Summary, run_batch

__all__ = ["SHARD_ROWS", "Engine", "Layout", "Summary", "here", "processes", "run_batch"]
