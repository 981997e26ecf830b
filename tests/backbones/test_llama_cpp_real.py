"""The llama.cpp backbone against our own transformer with the same weights: needs llama-cpp-python and gguf."""

import checkpoints
import gguf_files
import numpy as np
import pytest

pytest.importorskip("llama_cpp")
pytest.importorskip("gguf")
pytest.importorskip("torch")

from commands import setscore

from setscore.backbones import RunOptions, llama_cpp, load_backbone
from setscore.backbones.shelf import SHELF
from setscore.errors import BackboneError
from setscore.prompts import Template
from setscore.records import Query, Slot

TEXTS = ["Crude prices fell again.", "It rained all week. " * 4, "Oil."]
QUERIES = [Template.of("express").query(text, label) for text in TEXTS for label in ("oil", "rain")]


@pytest.fixture(scope="module", params=["llada", "dream"])
def pair(request, tmp_path_factory):
    """Our backbone of a folder, and the file that llama.cpp reads."""
    folder = checkpoints.make(tmp_path_factory.mktemp(request.param), request.param, shards=2)
    file = gguf_files.write(folder, tmp_path_factory.mktemp("gguf") / f"{request.param}.gguf", request.param)
    ours = load_backbone(str(folder), attention="exact", options=RunOptions(device="cpu", dtype="fp32"))
    return ours, file


@pytest.mark.parametrize("flash", [False, True])
def test_the_same_log_odds(pair, flash, monkeypatch):
    """Its flash attention reads keys and values in fp16; without it, the numbers are ours."""
    ours, file = pair
    library, default = llama_cpp._library(), llama_cpp._library().llama_context_default_params

    def settings():
        made = default()
        made.flash_attn_type = library.LLAMA_FLASH_ATTN_TYPE_AUTO if flash else library.LLAMA_FLASH_ATTN_TYPE_DISABLED
        return made

    monkeypatch.setattr(library, "llama_context_default_params", settings)
    SHELF.clear()
    theirs = load_backbone(str(file), threads=1)
    expected, found = (np.concatenate(backbone.log_odds(QUERIES)) for backbone in (ours, theirs))
    assert np.ptp(expected) > 0.1
    assert np.abs(found - expected).max() < (2e-2 if flash else 1e-4)
    assert theirs.spec.shift == ours.spec.shift


def test_several_slots(pair):
    ours, file = pair
    query = Query("Document:\n", "Crude prices fell.", ("\n\nAnswers:", Slot(), ";", Slot(True), ";", Slot()))
    theirs = load_backbone(str(file), threads=1)
    (expected,), (found,) = (backbone.log_odds([query]) for backbone in (ours, theirs))
    assert found == pytest.approx(expected, abs=2e-2)


def test_facts_come_from_the_file(pair):
    _, file = pair
    code, out, err = setscore("models", "--check", file)
    assert (code, err) == (0, "")
    family = file.stem
    for fact in (
        "revision   local file with SHA-256 ", f"B parameters, architecture {family}\n", "all F32, as the file has it",
        "GB for the weights", f"'{checkpoints.MASKS[family]}' (5)",
        "1 before the slot" if family == "dream" else "at the slot",
    ):  # fmt: skip
        assert fact in out


def test_a_broken_file_is_named(pair, tmp_path):
    _, file = pair
    (tmp_path / "cut.gguf").write_bytes(file.read_bytes()[:2000])
    with pytest.raises(BackboneError, match=r"llama.cpp cannot read .*cut.gguf. Check that the file is whole"):
        load_backbone(str(tmp_path / "cut.gguf"))
