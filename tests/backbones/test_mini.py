"""Relations that must hold for the embedded backbone.

Tolerance: int8 activations are rounded, and fp32 sums may differ in the last bit with the shape of a batch, which can
move a rounding by one step. Most scores are equal to the last bit; STABLE bounds what a moved rounding may do to a
log-odds (the largest seen was 0.04).
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score, recall_score

from setscore import SetScoreClassifier, read_documents, read_labels
from setscore.backbones import load_backbone
from setscore.backbones.mini import MiniBackbone, default_folder
from setscore.errors import BackboneError, ScoreError, VerbalizerError
from setscore.prompts import VERBALIZERS, Template, Verbalizer
from setscore.records import Query, Slot

STABLE = 0.1
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def sample():
    texts = [row.document.text for row in read_documents(DATA / "everyday.jsonl")]
    return texts, read_labels(DATA / "everyday_labels.yaml")


@pytest.fixture(scope="module")
def scores(sample):
    texts, labels = sample
    return SetScoreClassifier(labels).decision_function(texts)


def test_one_by_one_equals_together(sample, scores):
    texts, labels = sample
    alone = np.concatenate([SetScoreClassifier(labels).decision_function([text]) for text in texts[:12]])
    assert np.abs(alone - scores[:12]).max() < STABLE


def test_order_and_duplicates_do_not_matter(sample, scores):
    texts, labels = sample
    order = np.random.default_rng(3).permutation(len(texts))
    doubled = [texts[i] for i in order for _ in range(2)]
    again = SetScoreClassifier(labels).decision_function(doubled)
    assert np.abs(again[::2] - scores[order]).max() < STABLE
    assert np.abs(again[::2] - again[1::2]).max() < STABLE


def test_padding_does_not_matter(sample, scores):
    """A short document beside a long one is padded; its scores stay."""
    texts, labels = sample
    long = " ".join(texts[:4])
    beside = SetScoreClassifier(labels).decision_function([texts[7], long])
    assert abs(beside[0] - scores[7]).max() < STABLE


def test_permuting_labels_permutes_scores(sample, scores):
    texts, labels = sample
    order = np.random.default_rng(5).permutation(len(labels))
    permuted = SetScoreClassifier([labels.labels[i] for i in order]).decision_function(texts[:20])
    assert np.abs(permuted - scores[:20][:, order]).max() < STABLE


def test_a_label_scores_the_same_among_many(sample, scores):
    """Shared attention shows no question another one; more labels than a row holds change nothing."""
    texts, labels = sample
    others = [f"topic number {i}" for i in range(150)]
    among = SetScoreClassifier([*others, *labels.labels]).decision_function(texts[:3])[:, 150:]
    assert np.abs(among - scores[:3]).max() < STABLE


@pytest.mark.parametrize(
    ("model", "file"), [("setscore-small", "fp32_log_odds.json"), ("setscore-mini", "fp32_log_odds_mini.json")]
)
def test_int8_is_close_to_fp32_and_alike_on_every_machine(sample, model, file):
    """The sample: tests/data/everyday.jsonl, 50 documents by 12 labels. The export wrote fp32 log-odds, and those of
    the int8 graph on the machine that made it: kernels may round differently, no more.
    """
    texts, labels = sample
    labels = labels.asked_by("description")  # as the export asks them
    found = SetScoreClassifier(labels, backbone=model).decision_function(texts)
    exported = json.loads((DATA / file).read_text())
    full = np.array(exported["log_odds"])
    assert full.shape == found.shape
    assert ((full > 0) != (found > 0)).mean() < 0.01
    assert np.abs(np.array(exported["int8_log_odds"]) - found).max() < STABLE


def test_exact_and_shared_agree_as_far_as_they_do(sample, scores, capsys):
    texts, labels = sample
    exact = SetScoreClassifier(labels, attention="exact").decision_function(texts)
    flips = ((exact > 0) != (scores > 0)).mean()
    correlation = np.corrcoef(exact.ravel(), scores.ravel())[0, 1]
    with capsys.disabled():
        print(f"\nexact against shared on {exact.size} decisions: {flips:.2%} flip, correlation {correlation:.4f}")
    assert flips < 0.04
    assert correlation > 0.98


@pytest.mark.parametrize("name", VERBALIZERS)
def test_every_verbalizer_is_one_token_each(name):
    backbone = load_backbone("setscore-mini", verbalizer=name)
    (answer,) = backbone.log_odds([Template.of("express").query("Crude prices fell again.", "oil")])
    assert answer.shape == (1,)
    assert np.isfinite(answer).all()


def test_a_verbalizer_of_several_tokens_shows_how_it_splits():
    with pytest.raises(VerbalizerError, match=r"must be one token, but splits into \['inter', '##los'"):
        load_backbone("setscore-mini", verbalizer=Verbalizer("interlosable", "no"))
    with pytest.raises(VerbalizerError, match="same token"):
        load_backbone("setscore-mini", verbalizer=Verbalizer("Yes", "yes"))


def test_swapping_the_answers_negates_the_score():
    query = Template.of("express").query("Crude prices fell again.", "oil")
    plus, minus = (
        load_backbone("setscore-mini", verbalizer=pair).log_odds([query])[0][0]
        for pair in (Verbalizer("yes", "no"), Verbalizer("no", "yes"))
    )
    assert plus == pytest.approx(-minus, abs=1e-4)


@pytest.mark.parametrize("attention", ["shared", "exact"])
def test_several_slots_and_filled_slots(attention):
    """The layouts of the joint scorers: one query with many slots, some of them filled with answers."""
    backbone = load_backbone("setscore-mini", attention=attention)
    head = "\n\nLabels:\n- oil\n- sports\n- music\n\nAnswers:\n"
    opened = Query("Document:\n", "Crude prices fell.", (head, Slot(), ";", Slot(), ";", Slot()))
    filled = [
        Query("Document:\n", "Crude prices fell.", (head, Slot(answer), ";", Slot(), ";", Slot(False)))
        for answer in (True, False)
    ]
    answers = backbone.log_odds([opened, *filled])
    assert [len(answer) for answer in answers] == [3, 1, 1]
    assert answers[1][0] != answers[2][0]  # what stands in the first slot matters to the second


def test_answers_come_back_in_the_order_asked():
    backbone, template = load_backbone("setscore-mini"), Template.of("express")
    texts = ["The match ended two to one.", "Crude prices fell again. " * 20, "Rain is expected."]
    queries = [template.query(text, label) for label in ("oil", "sports", "weather") for text in texts]
    together = [answer[0] for answer in backbone.log_odds(queries)]
    alone = [backbone.log_odds([query])[0][0] for query in queries]
    assert np.abs(np.array(together) - alone).max() < STABLE
    assert backbone.log_odds([]) == []


def test_nothing_is_truncated_in_silence():
    query = Template.of("express").query("word " * 600, "oil")
    with pytest.raises(BackboneError, match=r"query 0 has 6\d\d tokens, setscore-mini reads 512"):
        load_backbone("setscore-mini").log_odds([query])


def test_the_whole_vocabulary_answers_yes_or_no():
    """Almost nothing but the two answers is likely at an answer's slot; emission reads the same logits."""
    backbone = load_backbone("setscore-mini")
    queries = [Template.of("express").query(text, "the weather") for text in ("It rains.", "He sings a song.")]
    for mass, word, log_odds in zip(
        backbone.answer_mass(queries), backbone.most_likely(queries), backbone.log_odds(queries), strict=True
    ):
        assert 0.9 < mass[0] <= 1
        assert word == ("yes" if log_odds[0] > 0 else "no")


def test_everyday_documents_before_any_fit():
    rows = [json.loads(line) for line in (DATA / "everyday.jsonl").read_text(encoding="utf-8").splitlines()]
    labels = read_labels(DATA / "everyday_labels.yaml")
    gold = labels.indicator([row["labels"] for row in rows])
    predicted = SetScoreClassifier(labels).predict([row["text"] for row in rows])
    assert f1_score(gold, predicted, average="micro") >= 0.70
    assert recall_score(gold, predicted, average="micro") >= 0.75


def test_the_model_is_small():
    assert sum(path.stat().st_size for path in default_folder().iterdir()) < 40e6


def test_nan_is_an_error_not_a_score(monkeypatch):
    class Broken:
        def run(self, _, inputs):
            return [np.full((*inputs["slots"].shape, 2), np.nan, dtype=np.float32), np.zeros((0, 384), np.float32)]

    backbone = load_backbone("setscore-mini")
    monkeypatch.setattr(backbone, "_session", Broken())
    with pytest.raises(ScoreError, match="NaN or infinity for 1 queries"):
        backbone.log_odds([Template.of("express").query("Rain.", "weather")])


def test_a_damaged_or_missing_file_is_refused(tmp_path):
    folder = tmp_path / "mini"
    shutil.copytree(default_folder(), folder)
    content = bytearray((folder / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.onnx").write_bytes(content)
    with pytest.raises(BackboneError, match=r"model.onnx is damaged"):
        MiniBackbone(attention="shared", verbalizer=Verbalizer("yes", "no"), folder=folder)
    (folder / "model.onnx").unlink()
    with pytest.raises(BackboneError, match=r"cannot be read .* Install the package again"):
        MiniBackbone(attention="shared", verbalizer=Verbalizer("yes", "no"), folder=folder)


DAMAGED = (
    "FOLDER/manifest.json is damaged: it must give a SHA-256 for model.onnx and tokenizer.json, and name no folder."
    " Install the package again."
)
WHOLE = {"model.onnx": "0", "tokenizer.json": "0"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", DAMAGED),
        ("[]", DAMAGED),
        ("[" * 10**5, DAMAGED),
        ("{}", DAMAGED),
        ('{"sha256": 3}', DAMAGED),
        (json.dumps({"sha256": WHOLE | {"tokenizer.json": None}}), DAMAGED),
        (json.dumps({"sha256": WHOLE | {"../other": "0"}}), DAMAGED),
        (json.dumps({"sha256": WHOLE}), "FOLDER/model.onnx is damaged: its SHA-256 is not the recorded one. Install it"
                                        " again."),
    ],
)  # fmt: skip
def test_a_manifest_that_cannot_be(tmp_path, content, message):
    shutil.copytree(default_folder(), tmp_path / "mini")
    (tmp_path / "mini" / "manifest.json").write_text(content)
    with pytest.raises(BackboneError) as caught:
        load_backbone(str(tmp_path / "mini"))
    assert str(caught.value).replace(str(tmp_path / "mini"), "FOLDER") == message


def test_a_folder_of_the_recipe_is_a_backbone_too(tmp_path):
    folder = tmp_path / "package"
    shutil.copytree(default_folder(), folder)
    documents, labels = ["It rained all week."], ["weather", "software"]
    found, own = (
        SetScoreClassifier(labels, backbone=name).decision_function(documents)
        for name in (str(folder), "setscore-mini")
    )
    assert np.array_equal(found, own)


def test_unknown_names():
    with pytest.raises(BackboneError, match="Did you mean 'setscore-mini'"):
        load_backbone("setscore-mimi")
    with pytest.raises(
        BackboneError, match=r"unknown attention mode of setscore-mini 'causal'. Known: auto, exact, sh"
    ):
        load_backbone("setscore-mini", attention="causal")


def test_the_small_model_reads_who_wants_what():
    labels = {"refund": "a request to get money back", "missing part": "a part that was not in the box"}
    texts = ["I do not want my money back, just send the missing screws.", "Please give me my money back."]
    wanted, asked_for = SetScoreClassifier(labels, backbone="setscore-small").classify(texts)
    assert "missing part" in wanted.labels
    assert "refund" in asked_for.labels
    assert asked_for.log_odds["refund"] > wanted.log_odds["refund"] + 1
    loaded = load_backbone("setscore-small")
    assert loaded.spec.name == "setscore-small"
    assert loaded.identity != load_backbone("setscore-mini").identity
    assert loaded.identity == load_backbone(str(default_folder("setscore-small"))).identity


def test_the_environment_says_how_many_threads(monkeypatch):
    """For processes that share a machine: each would take all cores."""
    monkeypatch.setenv("SETSCORE_THREADS", "1")
    backbone = load_backbone("setscore-mini")
    assert backbone._session.get_session_options().intra_op_num_threads == 1
    monkeypatch.setenv("SETSCORE_THREADS", "many")
    with pytest.raises(BackboneError, match=r"SETSCORE_THREADS is a number of threads from 1, got 'many'\."):
        load_backbone("setscore-mini")
