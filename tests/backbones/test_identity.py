"""The identity of a backbone: one for the same weights by whatever name, another for whatever changes an answer."""

import hashlib
import json
import os
import shutil
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from setscore import SetScoreClassifier
from setscore.backbones import BACKBONES, RunOptions, asking, load_backbone, mini
from setscore.backbones import checkpoints as files
from setscore.backbones.mini import default_folder
from setscore.backbones.shelf import SHELF
from setscore.errors import BackboneError
from setscore.prompts import Verbalizer

COMMIT = "c" * 40
SWAPPED = Verbalizer("no", "yes")


@pytest.fixture(autouse=True)
def empty():
    SHELF.clear()
    files._digest.cache_clear()
    yield
    SHELF.clear()
    if (masked_files := sys.modules.get("setscore.backbones.masked_files")) is not None:
        masked_files._read_settings.cache_clear()  # ids on the Hub are taken to stay what they are


@pytest.fixture
def read(monkeypatch):
    """Names of the files whose SHA-256 was computed."""
    names, real = [], hashlib.file_digest

    def counted(file, kind):
        names.append(Path(file.name).name)
        return real(file, kind)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    return names


def identity(name, **options):
    return load_backbone(str(name), **options).identity


def made_again(folder, file="model.onnx", change=lambda content: content):
    """A folder of setscore-mini with one file changed, and a manifest that fits it."""
    content = change((folder / file).read_bytes())
    (folder / file).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"][file] = hashlib.sha256(content).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def other_weight(content):
    """One byte in the middle of the weights."""
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def with_capitals(tokenizer):
    settings = json.loads(tokenizer)
    settings["normalizer"]["lowercase"] = not settings["normalizer"]["lowercase"]
    return json.dumps(settings).encode()


class TestMini:
    @pytest.fixture
    def folder(self, tmp_path):
        shutil.copytree(default_folder(), tmp_path / "mini")
        return tmp_path / "mini"

    def test_by_name_by_path_and_by_relative_path(self, folder, monkeypatch):
        monkeypatch.chdir(folder.parent)
        names = ["setscore-mini", default_folder(), folder, "mini", "./mini/../mini"]
        assert len({identity(name) for name in names}) == 1

    def test_everything_that_changes_an_answer(self, folder):
        found = [
            identity("setscore-mini"),
            identity("setscore-mini", attention="exact"),
            identity("setscore-mini", verbalizer="true/false"),
            identity("setscore-mini", verbalizer=SWAPPED),
            identity("setscore-mini?guidance=0.5"),
            identity("setscore-mini?guidance=0.25"),
            identity("setscore-mini?prior=true"),
            identity(made_again(folder, "model.onnx", other_weight)),
            identity(made_again(folder, "tokenizer.json", with_capitals)),
        ]  # fmt: skip
        assert len(set(found)) == len(found)
        assert identity("setscore-mini", threads=1) == identity("setscore-mini?device=cpu") == found[0]

    def test_another_way_to_make_tokens_of_a_prompt_is_another_identity(self, monkeypatch):
        before = identity("setscore-mini")
        monkeypatch.setattr(asking, "PROMPTING", asking.PROMPTING + 1)
        assert identity("setscore-mini") != before

    def test_behaves_the_same_by_name_and_by_path(self, folder, monkeypatch):
        """Temperature and competition before `fit` belong to the model, not to its name."""
        monkeypatch.chdir(folder.parent)
        texts, labels = ["I want my money back for the broken lamp."], ["refund", "weather", "praise"]
        names = ["setscore-mini", str(folder), "mini"]
        models = [SetScoreClassifier(labels, backbone=name) for name in names]
        calibrations = [model.current_calibration() for model in models]
        assert {(c.temperature, c.competition) for c in calibrations} == {(0.5, 0.35)}
        first, *others = [model.predict_proba(texts) for model in models]
        for other in others:
            np.testing.assert_array_equal(other, first)
        assert len({load_backbone(name).spec for name in names}) == 1

    def test_a_classifier_fitted_by_name_takes_the_path(self, folder):
        texts, gold = ["It rained.", "Oil is cheap.", "Rain again.", "Crude oil."] * 3, [["rain"], ["oil"]] * 6
        fitted = SetScoreClassifier(["oil", "rain"], backbone="setscore-mini", calibration="paper").fit(texts, gold)
        moved = fitted.set_params(backbone=str(folder))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            moved.predict(texts)

    def test_weights_that_were_made_again_in_the_same_folder(self, folder):
        """Training writes into one folder again and again: neither old answers nor the old identity are kept."""
        old = load_backbone(str(folder))
        before = old.identity
        made_again(folder, "model.onnx", other_weight)
        assert identity(folder) != before
        assert load_backbone(str(folder))._session is not old._session
        assert old.identity == before
        assert mini.load_files(folder, None)[0] is load_backbone(str(folder))._session


def hub_cache(cache: Path, repository: str, folder: Path, large=(".safetensors", ".bin")) -> Path:
    """A snapshot as huggingface_hub lays it out: files are links to blobs, large ones named by their SHA-256."""
    home = cache / f"models--{repository.replace('/', '--')}"
    snapshot = home / "snapshots" / COMMIT
    for place in (snapshot, home / "blobs", home / "refs"):
        place.mkdir(parents=True)
    (home / "refs" / "main").write_text(COMMIT)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        kind = hashlib.sha256 if path.suffix in large else hashlib.sha1
        blob = home / "blobs" / kind(content).hexdigest()
        blob.write_bytes(content)
        (snapshot / path.name).symlink_to(os.path.relpath(blob, snapshot))
    return snapshot


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of the Hub, without a connection."""
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


class TestNative:
    @pytest.fixture
    def folder(self, tmp_path):
        pytest.importorskip("torch")
        import checkpoints

        return checkpoints.make(tmp_path / "llada", "llada", shards=2)

    @pytest.fixture
    def named(self, folder, cache, monkeypatch):
        """The same checkpoint as an entry of the table, whose files are in the Hub's cache."""
        from setscore.backbones.specs import FAMILY_SPECS, SPECS

        spec = replace(
            FAMILY_SPECS["llada"], name="tiny", repository="some/tiny", revision=COMMIT, mask_id=5, context=256
        )
        monkeypatch.setitem(SPECS, "tiny", spec)
        monkeypatch.setitem(BACKBONES, "tiny", BACKBONES["llada-1.5"])
        hub_cache(cache, "some/tiny", folder)
        return "tiny"

    def name(self, place, options="dtype=fp32&device=cpu"):
        return f"{place}?{options}"

    def test_by_name_by_path_and_by_relative_path(self, folder, named, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "link").symlink_to(folder)
        shutil.copytree(folder, tmp_path / "copy")
        places = [named, folder, "llada", "./llada", "link", tmp_path / "copy"]
        assert len({identity(self.name(place)) for place in places}) == 1

    def test_large_files_in_the_hubs_cache_are_not_read_for_it(self, named, read):
        identity(self.name(named))
        weights = [name for name in read if len(name) == 64]
        assert weights == []
        assert len(read) == 1  # config.json, by its content

    def test_a_file_is_read_once_while_it_stays_as_it_is(self, folder, read):
        for attention in ("exact", "shared", "exact"):
            identity(self.name(folder), attention=attention)
        shards = sorted(name for name in read if name.startswith("model-"))
        assert shards == ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
        os.utime(folder / shards[0], ns=(0, 0))
        identity(self.name(folder))
        assert sorted(read).count(shards[0]) == 2
        assert sorted(read).count(shards[1]) == 1

    def test_everything_that_changes_an_answer(self, folder, tmp_path):
        import checkpoints
        from safetensors.torch import load_file, save_file

        def changed(name, **changes):
            other = tmp_path / name
            shutil.copytree(folder, other)
            config = json.loads((other / "config.json").read_text())
            (other / "config.json").write_text(json.dumps(config | changes))
            return other

        weights = changed("weights")
        path = sorted(weights.glob("*.safetensors"))[0]
        save_file({name: tensor * 1.001 for name, tensor in load_file(path).items()}, path)
        tokenizer = changed("tokenizer")
        made = checkpoints.tokenizer()
        made.add_tokens(["crude oil"])
        made.save(str(tokenizer / "tokenizer.json"))
        found = [
            identity(self.name(folder)),
            identity(self.name(folder), attention="shared"),
            identity(self.name(folder), verbalizer=SWAPPED),
            identity(self.name(folder, "dtype=bf16&device=cpu")),
            identity(self.name(folder, "dtype=fp32&device=cpu&chat=true")),
            identity(self.name(folder, "dtype=fp32&device=cpu&guidance=1")),
            identity(self.name(folder, "dtype=fp32&device=cpu&prior=true")),
            identity(self.name(changed("theta", rope_theta=10000.0))),
            identity(self.name(weights)),
            identity(self.name(tokenizer)),
        ]
        assert len(set(found)) == len(found)
        assert identity(self.name(folder, "dtype=fp32&device=cpu&batch_tokens=64")) == found[0]
        assert identity(f"{folder}?device=cpu") == found[3]  # "auto" is bf16

    def test_a_model_made_in_memory_has_none(self, folder):
        backbone = load_backbone(self.name(folder))
        bare = type(backbone)(backbone.model, backbone.prompter, "exact")
        with pytest.raises(BackboneError, match=r"was made in memory: no file tells its weights from others\."):
            assert bare.identity


class TestMaskedLm:
    @pytest.fixture
    def folder(self, tmp_path):
        pytest.importorskip("torch")
        pytest.importorskip("transformers")
        import masked_models

        return masked_models.write(tmp_path / "bert", "bert")

    def test_by_id_by_path_and_by_relative_path(self, folder, cache, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        hub_cache(cache, "tests/bert", folder)
        names = [f"hf:{place}?device=cpu" for place in (folder, "bert", "tests/bert")]
        names.append(f"hf:tests/bert?device=cpu&revision={COMMIT}")
        assert len({identity(name) for name in names}) == 1

    def test_large_files_in_the_hubs_cache_are_not_read_for_it(self, folder, cache, read):
        hub_cache(cache, "tests/bert", folder)
        identity("hf:tests/bert?device=cpu")
        assert [name for name in read if len(name) == 64] == []

    def test_everything_that_changes_an_answer(self, folder, tmp_path):
        from safetensors.torch import load_file, save_file

        def copied(name, file="config.json", old="", new=""):
            other = tmp_path / name
            shutil.copytree(folder, other)
            text = (other / file).read_text()
            assert old in text
            (other / file).write_text(text.replace(old, new))
            return other

        eps = copied("eps", "config.json", "1e-12", "1e-6")
        vocabulary = copied("vocabulary", "tokenizer.json", '"again"', '"before"')
        weights = copied("weights")
        state = load_file(weights / "model.safetensors")
        save_file(
            {key: t * 1.001 for key, t in state.items()}, weights / "model.safetensors", metadata={"format": "pt"}
        )
        found = [
            identity(f"hf:{folder}?device=cpu"),
            identity(f"hf:{folder}?device=cpu&dtype=bf16"),
            identity(f"hf:{folder}?device=cpu&guidance=1"),
            identity(f"hf:{folder}?device=cpu&prior=true"),
            identity(f"hf:{folder}?device=cpu", verbalizer=SWAPPED),
            identity(f"hf:{eps}?device=cpu"),
            identity(f"hf:{vocabulary}?device=cpu"),
            identity(f"hf:{weights}?device=cpu"),
        ]
        assert len(set(found)) == len(found)
        assert identity(f"hf:{folder}?device=cpu&dtype=fp32&batch_tokens=99") == found[0]

    def test_code_that_comes_with_a_model_counts(self, folder, tmp_path, monkeypatch):
        from masked_models import own_code

        monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
        options = RunOptions(device="cpu", allow=("remote-code",))
        own = own_code(folder, tmp_path / "own", model_type="own-bert")
        before = load_backbone(f"hf:{own}", options=options).identity
        (own / "modeling_own.py").write_text((own / "modeling_own.py").read_text().replace("2 *", "3 *"))
        assert load_backbone(f"hf:{own}", options=options).identity != before


class TestGguf:
    @pytest.fixture
    def file(self, tmp_path, monkeypatch):
        """A stand-in for llama.cpp: what it computes is nothing here, only which file and how."""
        from llama_library import made_file

        return made_file(tmp_path, monkeypatch)

    def test_by_path_and_by_relative_path(self, file, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "other").mkdir()
        for name in ("dream.gguf", "tokenizer.json"):
            shutil.copy(tmp_path / name, tmp_path / "other" / name)
        assert len({identity(name) for name in (file.name, "dream.gguf", "other/dream.gguf")}) == 1

    def test_everything_that_changes_an_answer(self, file, tmp_path):
        (tmp_path / "other.gguf").write_bytes(b"GGUF of other weights")
        found = [
            identity(file.name),
            identity(f"{file.name}?guidance=1"),
            identity(f"{file.name}?prior=true"),
            identity(file.name, verbalizer=SWAPPED),
            identity(tmp_path / "other.gguf"),
        ]
        tokenizer = tmp_path / "tokenizer.json"
        tokenizer.write_text(tokenizer.read_text().replace('"normalizer": null', '"normalizer": {"type": "NFC"}'))
        found.append(identity(file.name))
        assert len(set(found)) == len(found)
        assert identity(file.name, threads=2) == found[-1]

    def test_a_file_is_read_once_while_it_stays_as_it_is(self, file, read):
        for _ in range(3):
            identity(file.name)
        assert read == ["dream.gguf"]
        Path(file.name).write_bytes(b"GGUF of other weights")
        identity(file.name)
        assert read == ["dream.gguf", "dream.gguf"]
