"""Loaded models: kept while there is room, the least recently used goes first."""

import threading
import time

import pytest

from setscore.backbones.shelf import MOST, NoRoomError, Shelf


class Machine:
    """Loads models, each of some bytes, into a memory of 10."""

    def __init__(self, size=10):
        self.shelf, self.size, self.loads, self.used = Shelf(), size, [], 0

    def get(self, name, needed=1, device="cpu"):
        def load():
            self.shelf.make_room(device, needed, self.free)
            if needed > self.free():
                raise NoRoomError(f"{name} does not fit")
            self.loads.append(name)
            return Model(self, needed)

        return self.shelf.get(name, load, device=device)

    def free(self):
        return self.size - self.used


class Model:
    def __init__(self, machine, needed):
        self.machine, self.needed = machine, needed
        self.me = self  # as models of transformers do
        machine.used += needed

    def __del__(self):
        self.machine.used -= self.needed


def test_models_that_take_turns_are_loaded_once():
    machine = Machine()
    for _ in range(3):
        assert machine.get("a") is machine.get("a")
        machine.get("b")
    assert machine.loads == ["a", "b"]


def test_the_least_recently_used_goes_first():
    machine = Machine()
    for name in ("a", "b", "a"):
        machine.get(name, 3)
    machine.get("c", 3)  # fits beside both, but not with as much to spare
    machine.get("a", 3)
    assert machine.loads == ["a", "b", "c"]
    machine.get("b", 3)
    assert machine.loads == ["a", "b", "c", "b"]
    assert machine.used <= 9


def test_a_model_that_needs_all_of_it_gets_all_of_it():
    machine = Machine()
    machine.get("a", 4)
    machine.get("b", 1)
    machine.get("c", 10)
    assert machine.used == 10
    with pytest.raises(NoRoomError, match="d does not fit"):
        machine.get("d", 11)
    assert machine.used == 0


def test_a_model_in_use_is_not_taken_away():
    machine = Machine()
    kept = machine.get("a", 6)
    with pytest.raises(NoRoomError):
        machine.get("b", 6)
    assert machine.used == kept.needed
    del kept
    machine.get("b", 6)


def test_memory_that_runs_out_while_loading_lets_the_others_go():
    """What was loaded of it is gone before the next try: it would not fit otherwise."""
    shelf, tries = Shelf(), []
    shelf.get("a", lambda: "A", device="cpu")
    shelf.get("b", lambda: "B", device="cpu")
    machine = Machine()

    def load():
        half = Model(machine, 5)
        tries.append(machine.used)
        if len(tries) < 3:
            raise NoRoomError("no more")
        return half

    assert shelf.get("c", load, device="cpu").needed == 5
    assert tries == [5, 5, 5]
    assert shelf.get("a", lambda: "loaded again", device="cpu") == "loaded again"


def test_other_devices_and_other_errors_touch_nothing():
    machine = Machine(size=4)
    machine.get("a", 2, "cuda:0")
    with pytest.raises(NoRoomError):
        machine.get("b", 5, "cpu")
    assert machine.get("a", 2, "cuda:0").needed == 2
    assert machine.loads == ["a"]
    with pytest.raises(OSError, match="disk"):
        machine.shelf.get("c", lambda: (_ for _ in ()).throw(OSError("disk")), device="cuda:0")
    machine.get("a", 2, "cuda:0")
    assert machine.loads == ["a"]


def test_small_models_are_few_too():
    machine = Machine(size=10**6)
    for number in range(MOST + 2):
        machine.get(number)
    assert machine.used == MOST
    machine.get(2)
    assert len(machine.loads) == MOST + 2
    machine.get(0)
    assert len(machine.loads) == MOST + 3


def test_threads_that_ask_at_once_get_one_model():
    shelf, loads = Shelf(), []

    def load():
        time.sleep(0.01)
        loads.append(1)
        return object()

    found = []
    threads = [threading.Thread(target=lambda: found.append(shelf.get("a", load, device="cpu"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    assert len(set(map(id, found))) == 1
