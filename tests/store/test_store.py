"""What a store promises, in memory and in a folder: what is there stays, what is damaged is put aside."""

import copy
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import setscore.store
from setscore.errors import DataFileError, SetScoreError
from setscore.store import Entry, MemoryStore, StoreWarning, answered, digest, open_store
from setscore.store.file import live_bytes
from setscore.store.folder import FILE, FolderStore

KEYS = [digest(number) for number in range(40)]


def values(keys):
    return {key: np.array([float(key[0]), -1.5]) for key in keys}


@pytest.fixture(params=["memory", "folder"])
def store(request, tmp_path):
    if request.param == "memory":
        yield MemoryStore()
        return
    made = FolderStore(tmp_path / "store")
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path):
    """A store in a folder with answers, closed."""
    store = FolderStore(tmp_path)
    store.put(values(KEYS))
    store.close()
    return tmp_path


def test_what_is_put_is_got_and_stays(store):
    assert store.get(KEYS) == {}
    store.put(values(KEYS[:20]))
    store.put({KEYS[0]: np.array([9.0, 9.0])})  # what is there is never changed
    found = store.get(KEYS)
    assert set(found) == set(KEYS[:20])
    for key, answer in values(KEYS[:20]).items():
        np.testing.assert_array_equal(found[key], answer)
        assert found[key].dtype == np.float64


def test_a_claim_is_the_claimers_until_it_is_answered_or_given_up(store):
    assert store.claim(KEYS[:6], 4) == KEYS[:4]
    assert store.claim(KEYS[:6], 4) == KEYS[4:6]
    store.put(values(KEYS[:2]))
    store.release(KEYS[2:4])
    assert store.claim(KEYS[:6], 9) == KEYS[2:4]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_not_kept(store, bad):
    answers = values(KEYS[:2]) | {KEYS[2]: np.array([1.0, bad])}
    with pytest.raises(SetScoreError, match=r"^1 of 3 answers hold NaN or infinity, and are not stored\.$"):
        store.put(answers)
    assert store.get(KEYS) == {}


def test_nothing_is_asked_twice_and_answers_come_in_order(store):
    asked = []

    def ask(places):
        asked.append(list(places))
        return [np.array([float(place)]) for place in places]

    keys = [KEYS[0], KEYS[1], KEYS[0], KEYS[2], KEYS[3]]
    assert [float(answer[0]) for answer in answered(store, keys, ask, 3)] == [0, 1, 0, 3, 4]
    assert asked == [[0, 1, 3], [4]]
    found = answered(store, keys, ask, 3)
    found[0][0] = 99  # a copy
    assert [float(answer[0]) for answer in answered(store, keys, ask, 3)] == [0, 1, 0, 3, 4]
    assert len(asked) == 2


def test_a_question_that_fails_is_free_for_others(store):
    def fails(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answered(store, KEYS[:3], fails, 8)
    assert store.claim(KEYS[:3], 8) == KEYS[:3]


def test_threads_share_the_work(store):
    asked, results = [], {}

    def ask(places):
        asked.extend(places)
        time.sleep(0.01)
        return [np.array([float(place)]) for place in places]

    def run(name):
        results[name] = [float(answer[0]) for answer in answered(store, KEYS, ask, 5)]

    threads = [threading.Thread(target=run, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(asked) == list(range(len(KEYS)))
    assert all(found == list(range(len(KEYS))) for found in results.values())


def test_long_waiting_is_told_once(store, monkeypatch):
    monkeypatch.setattr(setscore.store, "TOLD_AFTER", 0.05)
    store.claim(KEYS[:1], 1)
    threading.Timer(0.4, store.put, [values(KEYS[:1])]).start()
    with pytest.warns(StoreWarning) as told:
        answered(store, KEYS[:1], lambda _: pytest.fail("it was claimed"), 1)
    assert [str(one.message) for one in told] == [
        "another process is asking the same questions; its answers are waited for."
    ]


def test_tables_are_kept_and_listed_newest_last(store):
    first = Entry("exp", "a", "pool", "k1", {"labels": ["x"]})
    second = Entry("exp", "b", "pool", "k2", {})
    changed = Entry("exp", "a", "pool", "k3", {"labels": ["y"]})
    store.put_table(first, b"one")
    store.put_table(second, b"two")
    store.put_table(first, b"ignored: the key says what it holds")
    assert store.table("k1") == ({"labels": ["x"]}, b"one")
    assert store.table("k9") is None
    store.put_table(changed, b"three")
    assert [entry.key for entry in store.entries()] == ["k2", "k3"]
    store.put_table(first, b"one")  # the same once more: now it is the newest again
    assert sorted(entry.key for entry in store.entries()) == ["k1", "k2"]


def test_copies_are_the_same_store(store, tmp_path):
    assert copy.deepcopy(store) is store
    store.put(values(KEYS[:1]))
    other = pickle.loads(pickle.dumps(store))
    known = other.get(KEYS)
    assert list(known) == ([] if isinstance(store, MemoryStore) else KEYS[:1])
    if isinstance(other, FolderStore):
        other.close()


def test_a_memory_that_is_full_begins_anew():
    store = MemoryStore(most=7)
    store.put(values(KEYS[:5]))
    store.put(values(KEYS[5:10]))
    assert set(store.get(KEYS)) == set(KEYS[5:10])


def test_a_folder_is_opened_once_by_whatever_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_store("scores") is open_store(tmp_path / "scores")
    assert open_store(open_store("scores")) is open_store("scores")
    open_store("scores").put(values(KEYS[:1]))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert set(FolderStore(tmp_path / "scores").get(KEYS)) == set(KEYS[:1])
    with pytest.raises(SetScoreError, match=r"^a store is a folder or a Store such as MemoryStore\(\), got 3\.$"):
        open_store(3)


def test_a_link_to_the_folder_is_the_same_store_and_keeps_its_claims(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    one, two = FolderStore(tmp_path / "real"), FolderStore(tmp_path / "link")
    assert one.claim(KEYS[:1], 1) == KEYS[:1]
    assert two.claim(KEYS[:1], 1) == []
    assert FolderStore(tmp_path / "real").claim(KEYS[:1], 1) == []


def other_database(path):
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE flowers (name TEXT)")
    db.close()


def flipped(path):
    """A byte of an answer is another one."""
    data = bytearray(path.read_bytes())
    place = data.index(np.array([-1.5]).tobytes())
    data[place + 7] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text("not a database at all, " * 100),
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        lambda path: path.write_bytes(path.read_bytes()[:4096] + os.urandom(path.stat().st_size - 4096)),
        other_database,
        flipped,
    ],
    ids=["text", "a header alone", "a page", "half", "noise", "another database", "a flipped bit"],
)
def test_a_damaged_or_foreign_file_is_put_aside_and_begun_anew(folder, damage):
    damage(folder / FILE)
    before = (folder / FILE).read_bytes()
    store = FolderStore(folder)
    with pytest.warns(StoreWarning) as told:
        assert store.get(KEYS) == {}
    assert [str(one.message) for one in told] == [
        f"{folder / FILE} was damaged or no store of scores: it is {FILE}.damaged-1 now, and a new one is begun."
    ]
    assert (folder / f"{FILE}.damaged-1").read_bytes() == before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.put(values(KEYS))
        assert set(store.get(KEYS)) == set(KEYS)
    store.close()


def test_a_file_that_is_damaged_while_it_is_open_costs_no_new_answer(folder):
    one, two = FolderStore(folder), FolderStore(folder)
    assert len(one.get(KEYS)) == len(two.get(KEYS)) == len(KEYS)
    one._file._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with (folder / FILE).open("r+b") as file:
        file.truncate(4096)
    new = {digest("new"): np.array([4.0])}
    with pytest.warns(StoreWarning, match="damaged-1 now"):
        one.put(new | values(KEYS[:1]))
    assert set(two.get([*new, *KEYS])) == {*new, KEYS[0]}  # it finds the new file by itself
    assert (folder / f"{FILE}.damaged-1").exists()


def test_a_folder_that_is_removed_is_begun_anew(folder):
    store = FolderStore(folder)
    assert len(store.get(KEYS)) == len(KEYS)
    for path in folder.iterdir():
        path.unlink()
    assert store.get(KEYS) == {}
    store.put(values(KEYS[:2]))
    assert set(FolderStore(folder).get(KEYS)) == set(KEYS[:2])


def test_another_layout_is_left_alone(folder):
    with sqlite3.connect(folder / FILE) as db:
        db.execute("PRAGMA user_version = 7")
    db.close()
    with pytest.raises(DataFileError) as error:
        FolderStore(folder).get(KEYS)
    assert str(error.value) == (
        f"{folder / FILE} has the layout 7, this version of SetScore reads 1. Update SetScore, or give another folder."
    )
    assert [path.name for path in folder.glob("*damaged*")] == []


def test_a_full_disk_is_one_line_and_keeps_what_is_there(folder):
    store = FolderStore(folder)
    store.get(KEYS)
    pages = store._file._connection.execute("PRAGMA page_count").fetchone()[0]
    store._file._connection.execute(f"PRAGMA max_page_count = {pages}")
    many = [digest("more", number) for number in range(50)]
    with pytest.raises(DataFileError) as error:
        answered(store, many, lambda places: [np.zeros(900) for _ in places], 100)
    assert str(error.value) == (
        f"{folder / FILE}: the disk is full. Make room and run it again; what is stored is kept."
    )
    assert set(store.get([*many, *KEYS])) == set(KEYS)
    store._file._connection.execute("PRAGMA max_page_count = 100000")
    assert (
        len(answered(store, list(many), lambda places: [np.zeros(900) for _ in places], 100)) == 50
    )  # no claim is left


READ_ONLY = """
import os, sys
from pathlib import Path
import numpy as np
from setscore.errors import SetScoreError
from setscore.store.folder import FolderStore
if os.getuid() == 0:  # root may write everywhere
    os.setgid(65534)
    os.setuid(65534)
try:
    FolderStore(Path(sys.argv[1])).put({b"k": np.array([1.0])})
except SetScoreError as error:
    print(error)
"""


@pytest.mark.parametrize("there", [False, True], ids=["an empty folder", "a store"])
def test_a_read_only_folder_is_one_line(there):
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to others
        folder = Path(place) / "locked"
        folder.mkdir()
        if there:
            store = FolderStore(folder)
            store.put(values(KEYS))
            store.close()
        Path(place).chmod(0o755)
        folder.chmod(0o555)
        for path in folder.iterdir():
            path.chmod(0o444)
        done = subprocess.run([sys.executable, "-c", READ_ONLY, folder], capture_output=True, text=True)
        folder.chmod(0o755)
    assert (done.stdout, done.stderr) == (f"scores cannot be stored in {folder}: Permission denied.\n", "")


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_place_that_is_no_folder_is_one_line(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        DataFileError, match=rf"^scores cannot be stored in .*/{place}: (File exists|Not a directory)\.$"
    ):
        FolderStore(tmp_path / place).get(KEYS)


def test_a_store_holds_no_more_than_it_may(tmp_path):
    """It forgets some answers, never the tables, and what it forgot is asked again."""
    store = FolderStore(tmp_path, most=2 * 2**20)
    store.put_table(Entry("experiment", "method", "part", "key", {}), b"result" * 1000)
    keys = [digest("many", number) for number in range(9000)]
    for start in range(0, 9000, 300):
        store.put({key: np.full(50, float(start)) for key in keys[start : start + 300]})
        assert live_bytes(store._file._database()) <= 2 * 2**20
    kept = store.get(keys)
    assert 3000 < len(kept) < 5000  # of about 430 bytes each
    assert min(keys.index(key) for key in kept) < 1000  # by chance: some of the oldest are among them
    assert store.table("key") == ({}, b"result" * 1000)
    store._file._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (tmp_path / FILE).stat().st_size < 2.2 * 2**20
    asked = []
    answered(store, keys, lambda places: asked.extend(places) or [np.zeros(50) for _ in places], 600)
    assert len(asked) == 9000 - len(kept)
    with pytest.raises(SetScoreError, match=r"a store holds at least 1 MiB, got 5 bytes\."):
        FolderStore(tmp_path, most=5)


def test_the_bound_goes_with_the_store(tmp_path):
    store = open_store(tmp_path, 5 * 2**20)
    assert open_store(tmp_path).most == pickle.loads(pickle.dumps(store)).most == 5 * 2**20
    assert open_store(tmp_path, 6 * 2**20) is store
    assert store.most == 6 * 2**20


def test_a_file_that_was_cut_is_found_out_when_it_is_opened(tmp_path):
    """Whatever is looked for, and wherever the cut is."""
    store = FolderStore(tmp_path)
    keys = [digest("many", number) for number in range(500)]
    store.put({key: np.zeros(100) for key in keys})
    store._file._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    whole = (tmp_path / FILE).stat().st_size
    os.truncate(tmp_path / FILE, whole - 1)
    again = FolderStore(tmp_path)
    with pytest.warns(StoreWarning, match="damaged-1 now, and a new one is begun"):
        assert again.get([digest("never asked")]) == {}
