"""Baselines on small checkpoints in the true format, through the code that loads the real ones."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from baselines import tiny
from hypothesis import given
from hypothesis import strategies as st

from setscore import LabelSet
from setscore.baselines import BASELINES, TRAINED, load_baseline
from setscore.baselines.causal import parse_answer
from setscore.baselines.nli import HYPOTHESES
from setscore.baselines.setfit import draw_few
from setscore.baselines.training import Settings, decaying, schedule
from setscore.errors import BackboneError, LabelError, SetScoreError, TemplateError

LABELS = LabelSet.of(["oil", "match", "song"])
TEXTS = ["the oil is good", "a match and a song", "rain", "oil and a song in the rain", "the match", "a very bad song"]
GOLD = np.array([[word in text for word in LABELS.names] for text in TEXTS])
SOME = np.array([[True, False, True], [False, True, False], [False, False, False]] * 2)


def encode(texts):
    return np.array([[0.1, *(text.count(word) for word in LABELS.names), len(text) / 50] for text in texts])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The folder of a small checkpoint, written once."""
    made = {}

    def get(name):
        if name not in made:
            folder = str(tmp_path_factory.mktemp(name))
            if name in ("bart", "deberta"):
                tiny.nli(folder, kind=name)
            elif name in ("bert", "roberta"):
                tiny.encoder(folder, name)
            else:
                getattr(tiny, name)(folder)
            made[name] = folder
        return made[name]

    return get


def fast(**more):
    return Settings(learning_rate=5e-3, epochs=60, batch_size=3, **more)


@pytest.mark.parametrize(
    ("name", "checkpoint"),
    [("bart-mnli", "bart"), ("deberta-nli", "deberta"), ("qwen-yes-no", "causal"), ("cosine", None)],
)
def test_scores_depend_on_nothing_but_document_and_label(place, name, checkpoint):
    options = {"encode": encode} if checkpoint is None else {"checkpoint": place(checkpoint)}
    model = load_baseline(name, **options)
    whole = model.fit(TEXTS, GOLD, LABELS).score(TEXTS, LABELS)
    assert np.isfinite(whole.log_odds).all()
    order = [2, 0, 1]
    permuted = model.score(TEXTS[::-1], LabelSet(tuple(LABELS.labels[i] for i in order)))
    np.testing.assert_allclose(permuted.log_odds, whole.log_odds[::-1][:, order], atol=1e-4)
    some = model.score(TEXTS, LABELS, candidates=SOME)
    np.testing.assert_allclose(some.log_odds[SOME], whole.log_odds[SOME], atol=1e-4)
    assert np.isneginf(some.log_odds[~SOME]).all()
    if checkpoint:
        small = load_baseline(name, batch_size=2, **options).score(TEXTS, LABELS)
        np.testing.assert_allclose(small.log_odds, whole.log_odds, atol=1e-4)
        assert some.forwards == SOME.sum()


def test_entailment_is_that_of_the_pipeline(place):
    from transformers import pipeline

    reference = pipeline("zero-shot-classification", model=place("bart"), device="cpu")
    scores = load_baseline("bart-mnli", checkpoint=place("bart")).score(TEXTS[:2], LABELS).log_odds
    for row, text in enumerate(TEXTS[:2]):
        found = reference(text, list(LABELS.names), multi_label=True)
        expected = dict(zip(found["labels"], found["scores"], strict=True))
        np.testing.assert_allclose(1 / (1 + np.exp(-scores[row])), [expected[n] for n in LABELS.names], atol=1e-4)


def test_a_tuned_hypothesis_is_never_below_the_default(place):
    from setscore.ensemble import best_cut

    def reached(model):
        scores = model.score(TEXTS, LABELS).log_odds
        decided = scores >= best_cut(scores, GOLD)
        return 2 * (decided & GOLD).sum() / (decided.sum() + GOLD.sum())

    tuned = load_baseline("bart-mnli-template", checkpoint=place("bart")).fit(TEXTS, GOLD, LABELS)
    assert tuned.hypotheses[0] in HYPOTHESES
    assert reached(tuned) >= reached(load_baseline("bart-mnli", checkpoint=place("bart"))) - 1e-9


def test_generated_labels_are_read_and_failures_counted(place):
    scores = load_baseline("qwen-generate", checkpoint=place("causal")).score(TEXTS, LABELS, candidates=SOME)
    assert set(scores.log_odds[SOME]) <= {4.0, -4.0}
    assert np.isneginf(scores.log_odds[~SOME]).all()
    assert scores.details["unread"].sum() == len(TEXTS)  # random weights write no answer


@pytest.mark.parametrize(
    ("answer", "found", "unread"),
    [
        ("oil, song", ["oil", "song"], []),
        ("- Oil\n- 'match'.\n", ["oil", "match"], []),
        ("1. song; 2) oil", ["song", "oil"], []),
        ("None.", [], []),
        ("", [], []),
        ("oil, politics", ["oil"], ["politics"]),
        ("The document is about oil", [], ["The document is about oil"]),
        ("oil, OIL", ["oil"], []),
    ],
)
def test_answers_are_parsed(answer, found, unread):
    assert parse_answer(answer, LABELS.names) == (found, unread)


@given(st.sets(st.sampled_from(LABELS.names)))
def test_what_is_written_in_labels_is_read_back(names):
    assert parse_answer(", ".join(names), LABELS.names) == (list(names), [])


def test_a_linear_head_overfits_and_knows_its_labels():
    model = load_baseline("linear", encode=encode, regularisation=1e4).fit(TEXTS, GOLD, LABELS)
    np.testing.assert_array_equal(model.score(TEXTS, LABELS).log_odds > 0, GOLD)
    with pytest.raises(LabelError, match="fitted on 3 labels, other than the 1 label given"):
        model.score(TEXTS, LabelSet.of(["oil"]))


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_sigmoid_head_overfits_a_tiny_set_and_shows_progress(place, name):
    told = []
    model = load_baseline(name, checkpoint=place(name), settings=fast(), progress=lambda *step: told.append(step))
    fitted = model.fit(TEXTS, GOLD, LABELS)
    np.testing.assert_array_equal(fitted.score(TEXTS, LABELS).log_odds > 0, GOLD)
    assert [step for _, step, _ in told] == list(range(1, 121))
    first, last = (float(told[place][0].removeprefix("training, loss ")) for place in (0, -1))
    assert last < first / 4


def test_training_goes_on_after_a_kill(place, tmp_path):
    class KilledError(Exception):
        pass

    def kill(what, step, steps):
        if step == 23:
            raise KilledError

    options = {"checkpoint": place("bert"), "settings": fast(save_every=10)}
    straight = load_baseline("bert", **options).fit(TEXTS, GOLD, LABELS)
    with pytest.raises(KilledError):
        load_baseline("bert", folder=tmp_path, progress=kill, **options).fit(TEXTS, GOLD, LABELS)
    steps = []
    resumed = load_baseline("bert", folder=tmp_path, progress=lambda _, step, __: steps.append(step), **options)
    again = resumed.fit(TEXTS, GOLD, LABELS)
    assert steps[0] == 21
    np.testing.assert_allclose(again.score(TEXTS, LABELS).log_odds, straight.score(TEXTS, LABELS).log_odds, atol=1e-4)
    steps.clear()
    resumed.fit(TEXTS, GOLD, LABELS)
    assert steps == []  # all is done


def test_text_to_set_overfits_and_chunks_do_not_matter(place):
    model = load_baseline("flan-t5", checkpoint=place("t5"), settings=fast(), budget=32).fit(TEXTS, GOLD, LABELS)
    scores = model.score(TEXTS, LABELS)
    np.testing.assert_array_equal(scores.log_odds > 0, GOLD)
    assert not scores.details["unread"].any()
    np.testing.assert_array_equal(replace(model, chunk=1).score(TEXTS, LABELS).log_odds, scores.log_odds)


@given(st.integers(0, 99), st.integers(1, 4))
def test_few_documents_of_every_label(seed, few):
    gold = np.random.default_rng(seed).random((20, 5)) < 0.2
    rows = draw_few(gold, few, seed)
    assert (gold[rows].sum(axis=0) >= np.minimum(few, gold.sum(axis=0))).all()
    assert len(rows) <= few * 6  # five labels, and as many documents without any


@given(st.integers(1, 200), st.floats(0, 0.5))
def test_the_learning_rate_rises_and_falls(steps, warmup):
    rates = [schedule(step, steps, warmup) for step in range(steps)]
    peak = int(np.argmax(rates))
    assert max(rates) <= 1
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)


def test_mistakes_are_named(place, tmp_path):
    with pytest.raises(SetScoreError, match=r"unknown baseline 'bart-nli'. Did you mean 'bart-mnli'\?"):
        load_baseline("bart-nli")
    with pytest.raises(SetScoreError, match="unknown option of linear 'size'"):
        load_baseline("linear", size=3)
    with pytest.raises(TemplateError, match="exactly once"):
        load_baseline("bart-mnli", hypotheses=("no place",))
    with pytest.raises(
        BackboneError, match=r"cannot be loaded for the NLI baselines: .*config.json, model.safetensors"
    ):
        load_baseline("bart-mnli", checkpoint=str(tmp_path / "nothing")).score(TEXTS, LABELS)
    other = tiny.nli(str(tmp_path / "other"), names=("bad", "neutral", "good"))
    with pytest.raises(BackboneError, match="is no NLI model: its outputs are bad, neutral, good"):
        load_baseline("deberta-nli", checkpoint=other).score(TEXTS, LABELS)
    for name in TRAINED:
        with pytest.raises(SetScoreError, match="call fit before score"):
            load_baseline(name).score(TEXTS, LABELS)
    assert all(load_baseline(name) for name in BASELINES)


def test_biases_and_norms_do_not_decay(place):
    from transformers import AutoModel

    model = AutoModel.from_pretrained(place("bert"))
    decay, plain = decaying(model, 0.01)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert (decay["weight_decay"], plain["weight_decay"]) == (0.01, 0.0)
    assert all("LayerNorm" in names[id(one)] or names[id(one)].endswith("bias") for one in plain["params"])
    assert not any("LayerNorm" in names[id(one)] or names[id(one)].endswith("bias") for one in decay["params"])
    assert len(decay["params"]) + len(plain["params"]) == len(names)


@pytest.mark.parametrize("name", ["bart-mnli", "qwen-yes-no"])
def test_what_lies_behind_the_budget_is_not_read(place, name):
    """600 tokens of a document are read, by its own tokenizer, as the method's own backbones read them."""
    model = load_baseline(name, checkpoint=place("bart" if name == "bart-mnli" else "causal"), document_tokens=12)
    same = "the oil is good and the match is bad in the rain"
    found = model.score([same + " song" * 50, same + " very" * 9, same], LABELS).log_odds
    if name == "bart-mnli":  # words are tokens there
        np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    else:
        np.testing.assert_allclose(found[0], found[2], atol=1e-5)
    assert load_baseline(name).document_tokens == 600


def test_labels_are_offered_with_their_descriptions_and_named(place):
    model = load_baseline("qwen-generate", checkpoint=place("causal"))
    described = LabelSet.of({"oil": "crude oil or fuel", "song": None})
    prompt = model._prompt("rain", described.labels, described.asked_as)
    assert "\n- oil: crude oil or fuel\n- song: song\n" in prompt
    assert "Labels: oil, match, song\n" in model._prompt("rain", LABELS.labels, LABELS.asked_as)
