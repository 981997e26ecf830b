"""Several processes on one store, and kills: the same numbers, nothing asked twice, nothing lost."""

import multiprocessing
import random
import time
from collections import Counter

import numpy as np
import pytest
from fakes import FakeBackbone
from store_workers import LABELS, TEXTS, fork_with_a_store, logged, work

from setscore import SetScoreClassifier
from setscore.experiments.saved import one_saved
from setscore.store.folder import FolderStore

QUESTIONS = len(TEXTS) * len(LABELS)
KILLS, SECONDS = 10, 0.01  # a block of questions takes so long


@pytest.fixture(scope="module")
def start():
    """Starts a process of its own that does the worker's job."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["setscore.experiments.report"])  # what takes a second to load

    def started(target, *arguments):
        process = context.Process(target=target, args=arguments)
        process.start()
        return process

    return started


@pytest.fixture(scope="module")
def expected():
    """What a process finds that nobody disturbs and that has no store."""
    return SetScoreClassifier(LABELS, backbone=FakeBackbone()).decision_function(TEXTS)


def stored(folder, log):
    """The keys of `log` that have an answer, read through a connection of its own."""
    keys = sorted(set(logged(log)))
    store = FolderStore(folder)
    found = store.get([bytes.fromhex(key) for key in keys])
    store.close()
    return {key.hex() for key in found}


def finished(process, seconds=60):
    process.join(seconds)
    assert process.exitcode == 0
    return process


@pytest.mark.parametrize("attempt", range(20))
def test_two_processes_that_do_the_same_ask_everything_once(start, expected, tmp_path, attempt):
    log, folder = tmp_path / "log", tmp_path / "store"
    outs = [tmp_path / "one.npy", tmp_path / "two.npy"]
    for process in [start(work, log, folder, out) for out in outs]:
        finished(process)
    for out in outs:
        np.testing.assert_array_equal(np.load(out), expected)
    asked = Counter(logged(log))
    assert (len(asked), max(asked.values())) == (QUESTIONS, 1)
    assert stored(folder, log) == set(asked)
    np.testing.assert_array_equal(one_saved(folder).parts()["pool"].log_odds, expected)


def test_kills_at_random_points_cost_no_answer_that_was_stored(start, expected, tmp_path):
    log, folder, out = tmp_path / "log", tmp_path / "store", tmp_path / "out.npy"
    chance = random.Random(20)
    before: set[str] = set()
    for _ in range(KILLS):
        begun = len(logged(log))
        pair = [start(work, log, folder, None, SECONDS) for _ in range(2)]
        while len(logged(log)) == begun and any(process.is_alive() for process in pair):
            time.sleep(0.001)  # both have to load first
        for process in chance.sample(pair, 2):  # the second one finds the claims of the first, whose holder is gone
            time.sleep(chance.uniform(0, 2 * SECONDS))
            process.kill()
            process.join()
        asked = Counter(logged(log)[begun:])
        now = stored(folder, log)
        assert before <= now  # nothing is lost,
        assert not before & set(asked)  # nor asked again,
        assert max(asked.values(), default=1) <= 2  # and twice only what one was killed over
        before = now
    assert 0 < len(before) < QUESTIONS  # every kill fell into the work
    begun = len(logged(log))
    for process in [start(work, log, folder, out), start(work, log, folder, tmp_path / "other.npy")]:
        finished(process)
    asked = Counter(logged(log)[begun:])
    assert set(asked).isdisjoint(before)
    assert set(asked.values()) <= {1}
    assert len(before | set(asked)) == QUESTIONS
    np.testing.assert_array_equal(np.load(out), expected)
    np.testing.assert_array_equal(np.load(tmp_path / "other.npy"), expected)


def test_what_a_killed_process_was_at_is_taken_over_by_one_that_waits(start, expected, tmp_path):
    log, folder, out = tmp_path / "log", tmp_path / "store", tmp_path / "out.npy"
    slow = start(work, log, folder, None, 600.0)  # it never answers
    while not logged(log):
        time.sleep(0.01)
    other = start(work, log, folder, out)
    while len(set(logged(log))) < QUESTIONS:  # all that is left is what the first one is at
        time.sleep(0.01)
    assert other.is_alive()
    slow.kill()
    slow.join()
    finished(other)
    np.testing.assert_array_equal(np.load(out), expected)
    assert sorted(Counter(Counter(logged(log)).values()).items()) == [(1, QUESTIONS - 8), (2, 8)]


def test_a_forked_child_opens_the_store_for_itself(start, tmp_path):
    finished(start(fork_with_a_store, tmp_path))
    store = FolderStore(tmp_path)
    assert sorted(store.get([b"parent", b"child", b"left"])) == [b"child", b"parent"]
    assert store.claim([b"left"], 1) == [b"left"]  # the child is gone
    store.close()
