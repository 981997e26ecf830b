"""A causal model in a folder as a backbone: what holds for every backbone, and what is its own."""

import json
from pathlib import Path

import numpy as np
import pytest

from setscore import SetScoreClassifier, load_backbone
from setscore.backbones import Backbone, backbone_spec
from setscore.errors import BackboneError
from setscore.prompts import Template

torch = pytest.importorskip("torch")
pytest.importorskip("gguf")

from safetensors.torch import load_file, save_file  # noqa: E402

from recipes.tutor.corrections import correct, save, to_learn  # noqa: E402
from recipes.tutor.tokens import tokenizer_of  # noqa: E402
from recipes.tutor.weights import pack  # noqa: E402
from setscore.backbones.causal.model import build  # noqa: E402
from setscore.backbones.causal.weights import unpack  # noqa: E402
from tests.small_gguf import LAYERS, made  # noqa: E402

TEMPLATE = Template.of("express")
TEXTS = ["It rained all week.", "Oil fell <|endoftext|> again", "", "x" * 300]
LABELS = ["weather", "oil (crude and its price)", "a {brace}"]


def folder_of(path: Path) -> Path:
    """With corrections that are not nothing, as if something had been learned."""
    made(path / "model.gguf")
    packed, about = pack(path / "model.gguf", LAYERS)
    save_file(packed, path / "weights.safetensors", metadata=about)
    tokenizer_of(path / "model.gguf").save(str(path / "tokenizer.json"))
    torch.manual_seed(7)
    state, numbers = unpack(path / "weights.safetensors")
    learned = to_learn(correct(build(state, *numbers)))
    save(
        {name: value + 0.01 * torch.randn_like(value) for name, value in learned.items()}, path / "learned.safetensors"
    )
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("causal"))


@pytest.fixture(scope="module")
def backbone(folder: Path) -> Backbone:
    return load_backbone(str(folder))


def asked(backbone: Backbone, texts: list[str], labels: list[str]) -> np.ndarray:
    queries = [TEMPLATE.query(text, label) for text in texts for label in labels]
    return np.array([float(value[0]) for value in backbone.log_odds(queries)]).reshape(len(texts), len(labels))


def test_no_answer_depends_on_what_else_is_asked(folder: Path, backbone: Backbone) -> None:
    together = asked(backbone, TEXTS, LABELS)
    assert np.ptp(together) > 0.01
    for n, text in enumerate(TEXTS):
        for m, label in enumerate(LABELS):
            assert asked(backbone, [text], [label])[0, 0] == pytest.approx(together[n, m], abs=1e-4)
    np.testing.assert_allclose(asked(backbone, TEXTS[::-1], LABELS[::-1])[::-1, ::-1], together, atol=1e-4)
    small = load_backbone(f"{folder}?batch_tokens=64")
    np.testing.assert_allclose(asked(small, TEXTS, LABELS), together, atol=1e-4)


def test_shared_and_exact_attention_are_one(folder: Path, backbone: Backbone) -> None:
    assert backbone.attention == "shared"
    exact = load_backbone(str(folder), attention="exact")
    np.testing.assert_allclose(asked(exact, TEXTS, LABELS), asked(backbone, TEXTS, LABELS), atol=1e-4)


def test_it_is_asked_as_it_learned(folder: Path, backbone: Backbone) -> None:
    """Tokens and numbers are those of the recipe: the same question, read at the same place."""
    from recipes.tutor import learn
    from recipes.tutor.tokens import tokenized

    rows = [(text, [(label, 0.0) for label in LABELS]) for text in TEXTS[:2]]
    questions = tokenized(tokenizer_of(folder / "model.gguf"), rows)
    learned = learn.answer(learn.load(folder, torch.device("cpu")), questions, 2, 256)
    np.testing.assert_allclose(learned.reshape(2, -1), asked(backbone, TEXTS[:2], LABELS), atol=1e-3)


def test_what_was_learned_is_part_of_the_identity(folder: Path, backbone: Backbone, tmp_path: Path) -> None:
    for name in ("weights.safetensors", "tokenizer.json"):
        (tmp_path / name).symlink_to(folder / name)
    tensors = load_file(folder / "learned.safetensors")
    tensors["head.bias"] = tensors["head.bias"] + 1
    save_file(tensors, tmp_path / "learned.safetensors", metadata={"scale": "2.0"})
    other = load_backbone(str(tmp_path))
    assert other.identity != backbone.identity
    np.testing.assert_allclose(asked(other, TEXTS, LABELS), asked(backbone, TEXTS, LABELS) + 1, atol=1e-2)
    assert load_backbone(str(folder)).identity == backbone.identity


def test_a_classifier_uses_it(folder: Path) -> None:
    classifier = SetScoreClassifier(LABELS[:2], backbone=str(folder))
    found = classifier.classify(TEXTS)
    assert [one.error is None for one in found] == [True, True, False, True]
    assert backbone_spec(str(folder)).parameters > 1e6
    facts = load_backbone(str(folder)).facts()  # type: ignore[attr-defined]
    assert facts["blocks"] == "none, causal"
    assert facts["weights"].endswith(f"{LAYERS} layers")


@pytest.mark.parametrize(
    ("options", "verbalizer", "message"),
    [
        ("", "true/false", "learned to say yes and no"),
        ("?chat=true", "yes/no", "leave out chat"),
        ("?dtype=int8", "yes/no", "runs in auto, fp32, bf16; got dtype 'int8'"),
    ],
)
def test_what_it_cannot_do_is_said(folder: Path, options: str, verbalizer: str, message: str) -> None:
    with pytest.raises(BackboneError, match=message.replace("?", r"\?")):
        load_backbone(f"{folder}{options}", verbalizer=verbalizer)


def test_half_precision_is_near(folder: Path, backbone: Backbone) -> None:
    half = load_backbone(f"{folder}?dtype=bf16")
    assert half.identity != backbone.identity
    np.testing.assert_allclose(asked(half, TEXTS[:2], LABELS), asked(backbone, TEXTS[:2], LABELS), atol=0.5)


@pytest.mark.parametrize("name", ["weights.safetensors", "learned.safetensors", "tokenizer.json"])
def test_a_broken_file_is_named(folder: Path, tmp_path: Path, name: str) -> None:
    for path in folder.glob("*.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes() if path.name != name else path.read_bytes()[:100])
    with pytest.raises(BackboneError, match=name):
        load_backbone(str(tmp_path))


def test_metadata_of_another_program_is_refused(folder: Path, tmp_path: Path) -> None:
    for path in folder.glob("*.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    save_file(load_file(folder / "learned.safetensors"), tmp_path / "learned.safetensors")
    with pytest.raises(BackboneError, match=r"learned\.safetensors does not fit"):
        load_backbone(str(tmp_path))
    tensors = load_file(folder / "weights.safetensors")
    save_file(tensors, tmp_path / "weights.safetensors", metadata={"kinds": json.dumps({"yes_no": "F32"})})
    with pytest.raises(BackboneError, match=r"weights\.safetensors"):
        load_backbone(str(tmp_path))
