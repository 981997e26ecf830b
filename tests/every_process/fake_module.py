"""The backbone `fake` for processes of their own: word overlap, and what a test wants to go wrong.

FAKE_SECONDS   each call takes so long
a text with POISON breaks the model; one with DEADLY kills its process, unless the file FAKE_GRAVE is there by then
"""

import contextlib
import os
import signal
import time
from pathlib import Path

from fakes import FakeBackbone


class FaultyBackbone(FakeBackbone):
    def log_odds(self, queries):
        time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
        for query in queries:
            if "POISON" in query.document:
                raise RuntimeError("the model broke")
            if "DEADLY" in query.document:
                grave = Path(os.environ["FAKE_GRAVE"])
                if not grave.exists():
                    with contextlib.suppress(OSError):  # one that cannot be dug kills every time
                        grave.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
        return super().log_odds(queries)


def spec_of(name, options):
    return FaultyBackbone().spec


def load(name, *, attention, verbalizer, threads, options):
    return FaultyBackbone(attention)
