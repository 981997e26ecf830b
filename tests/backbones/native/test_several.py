"""More than one model at a time: loaded once while there is room, again when its files change."""

import gc
import os
import shutil
import weakref

import checkpoints
import masked_models
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from setscore import SetScoreClassifier
from setscore.backbones import load_backbone, masked_files
from setscore.backbones.asking import Question, Row
from setscore.backbones.native import backbone as native
from setscore.backbones.native import memory
from setscore.backbones.running import in_batches
from setscore.backbones.shelf import SHELF
from setscore.errors import BackboneError

TEXTS, LABELS = ["Crude prices fell again."], ["oil", "rain"]
END = "?dtype=fp32&device=cpu"


@pytest.fixture(autouse=True)
def empty():
    SHELF.clear()
    yield
    SHELF.clear()


@pytest.fixture
def folders(tmp_path):
    return [checkpoints.make(tmp_path / family, family) for family in ("llada", "dream")]


@pytest.fixture
def loads(monkeypatch):
    """Weak references to the models that were loaded, in order."""
    found = []

    def counted(function):
        def load(*args, **kwargs):
            model = function(*args, **kwargs)
            found.append(weakref.ref(model))
            return model

        return load

    monkeypatch.setattr(native, "load_weights", counted(native.load_weights))
    monkeypatch.setattr(masked_files, "_from_files", counted(masked_files._from_files))
    return found


def test_two_classifiers_that_take_turns_load_their_models_once(folders, loads):
    models = [SetScoreClassifier(LABELS, backbone=f"{folder}{END}") for folder in folders]
    first = [model.decision_function(TEXTS) for model in models]
    for _ in range(3):
        for model, expected in zip(models, first, strict=True):
            np.testing.assert_array_equal(model.decision_function(TEXTS), expected)
    assert len(loads) == 2


def test_models_of_transformers_and_our_own_share_the_room(folders, loads, tmp_path):
    written = [masked_models.write(tmp_path / kind, kind) for kind in ("bert", "roberta")]
    names = [f"{folders[0]}{END}", *(f"hf:{folder}?device=cpu" for folder in written)]
    for _ in range(3):
        for name in names:
            load_backbone(name)
    assert len(loads) == 3


@pytest.fixture
def quick_collection():
    """What is loaded already is left alone: else each collection looks at all of torch."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("quick_collection")
def test_where_one_fits_the_older_one_goes(folders, loads, monkeypatch):
    """The memory that is free is made up: what one model needs, less what the living ones have."""

    def free(_):
        gc.collect()
        return 300_000 - 250_000 * sum(reference() is not None for reference in loads)

    monkeypatch.setattr(native, "free_bytes", free)
    monkeypatch.setattr(memory, "free_bytes", free)
    options = f"{END}&batch_tokens=1"
    for _ in range(2):
        for folder in folders:
            load_backbone(f"{folder}{options}")
            assert sum(reference() is not None for reference in loads) == 1
    assert len(loads) == 4
    held = load_backbone(f"{folders[0]}{options}")
    with pytest.raises(BackboneError, match=r"needs 0\.0 GB in fp32, and cpu has 0\.0 GB free"):
        load_backbone(f"{folders[1]}{options}")
    assert held.log_odds([]) == []


ERRORS = [torch.OutOfMemoryError("no more"), MemoryError(), RuntimeError("can't allocate memory")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_memory_that_runs_out_while_loading(folders, loads, monkeypatch, error):
    real, tries = native.load_weights, []

    def scarce(*args, **kwargs):
        tries.append(loads[0]() is not None)
        if tries[-1]:  # as long as the other model is there
            raise error
        return real(*args, **kwargs)

    load_backbone(f"{folders[0]}{END}")
    monkeypatch.setattr(native, "load_weights", scarce)
    load_backbone(f"{folders[1]}{END}")
    assert tries == [True, False]
    loads.insert(0, lambda: "memory that somebody else has")
    with pytest.raises(
        BackboneError, match=r"memory ran out while .*dream was loaded\. Free some, or use a smaller dtype"
    ):
        load_backbone(f"{folders[1]}?dtype=bf16&device=cpu")


def test_memory_that_runs_out_in_a_pass_lets_other_models_go_first(folders, loads):
    for folder in folders:
        load_backbone(f"{folder}{END}")
    rows = [Row((1,) * 9, (Question(number, (2,), (0,)),)) for number in range(4)]
    sizes = []

    def compute(batch):
        sizes.append(len(batch))
        if loads[0]() is not None:
            raise torch.OutOfMemoryError("no more")
        return len(batch)

    assert sum(in_batches(rows, 1000, compute, device=torch.device("cpu"))) == 4
    assert sizes == [4, 4]
    assert loads[1]() is not None  # the last one loaded is most likely the one that computes


def changed(folder):
    path = folder / "model.safetensors"
    state = load_file(path)
    save_file({name: tensor * 1.5 for name, tensor in state.items()}, path)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9))


@pytest.mark.parametrize("kind", ["native", "hf"])
def test_weights_that_were_written_again_are_loaded_again(kind, loads, tmp_path):
    if kind == "native":
        name = f"{checkpoints.make(tmp_path / 'it', 'llada')}{END}"
    else:
        name = f"hf:{masked_models.write(tmp_path / 'it', 'bert')}?device=cpu"
    before = SetScoreClassifier(LABELS, backbone=name).decision_function(TEXTS)
    old = load_backbone(name)
    changed(tmp_path / "it")
    after = SetScoreClassifier(LABELS, backbone=name).decision_function(TEXTS)
    assert np.abs(before - after).max() > 0.01
    assert len(loads) == 2
    with pytest.raises(BackboneError, match=r"model.safetensors was changed after its weights were loaded\. Load them"):
        assert old.identity  # the file tells nothing of what `old` has in memory
    new = load_backbone(name)
    assert len(new.identity) == 64


@pytest.mark.parametrize("kind", ["native", "hf"])
def test_a_relative_path_is_where_the_process_is_now(kind, tmp_path, monkeypatch):
    make = checkpoints.make if kind == "native" else masked_models.write
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
    make(tmp_path / "1" / "it", "llada" if kind == "native" else "bert")
    shutil.copytree(tmp_path / "1" / "it", tmp_path / "2" / "it")
    changed(tmp_path / "2" / "it")
    name = {"native": f"it{END}", "hf": "hf:it?device=cpu"}[kind]
    found = []
    for number in ("1", "2", "1"):
        monkeypatch.chdir(tmp_path / number)
        found.append(SetScoreClassifier(LABELS, backbone=name).decision_function(TEXTS))
    np.testing.assert_array_equal(found[0], found[2])
    assert np.abs(found[0] - found[1]).max() > 0.01
