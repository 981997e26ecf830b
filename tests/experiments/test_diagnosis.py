"""The diagnosis finds what was planted: a biased slot and its movement, rates, wording, an empty document's bias."""

import numpy as np
import pytest
from fakes import PlantedBackbone
from hypothesis import given, settings
from hypothesis import strategies as st

from setscore.backbones import backbone_spec
from setscore.errors import SetScoreError
from setscore.experiments import diagnosis
from setscore.experiments.diagnosis_pictures import draw_label_bias, draw_label_rates, draw_slot_bias
from setscore.experiments.diagnosis_words import in_words, without_competition
from setscore.prompts import Template
from setscore.records import LabelSet

NAMES = ["oil", "sports", "weather", "music", "food"]
LABELS = LabelSet.of(NAMES)
TEXTS = [f"document number {number}" for number in range(12)]
EXPRESS = Template.of("express")


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(-5, 5), min_size=5, max_size=5))
def test_a_planted_slot_bias_is_found_exactly(bias):
    found = diagnosis.slot_bias(PlantedBackbone(bias), TEXTS, LABELS, orders=5)
    assert found.effect == pytest.approx(np.array(bias) - np.mean(bias), abs=1e-9)
    assert found.spread == pytest.approx(np.ptp(bias), abs=1e-9)
    plain = diagnosis.slot_bias(PlantedBackbone(), TEXTS, LABELS, orders=5)
    assert plain.spread == pytest.approx(0, abs=1e-9)
    assert found.label_effect == pytest.approx(plain.label_effect + np.mean(bias), abs=1e-9)


def test_the_collapse_stays_at_its_slot_while_labels_move():
    """The paper's observation: whichever label is placed in slot 1 is positive."""
    found = diagnosis.slot_bias(PlantedBackbone([9.0]), TEXTS, LABELS, orders=5)
    assert sorted(found.orders[:, 0].tolist()) == [0, 1, 2, 3, 4]  # every label visits the slot
    assert (found.rate[:, 0] == 1).all()
    assert found.strongest == 0
    there, elsewhere = found.moved(0)
    assert there == 1
    assert elsewhere < 0.7
    still, other = diagnosis.slot_bias(PlantedBackbone(), TEXTS, LABELS, orders=5).moved(0)
    assert still == pytest.approx(other)


@pytest.mark.parametrize("m", [12, 20, 28])
def test_few_orders_of_many_unequal_labels_invent_no_bias(m):
    """Turns by m / 4 alone would leave groups of slots and labels that never meet."""
    labels = LabelSet.of([f"label {number}" for number in range(m)])
    plain = diagnosis.slot_bias(PlantedBackbone(), TEXTS, labels)
    assert np.ptp(plain.label_effect) > 0.1
    assert plain.spread == pytest.approx(0, abs=1e-9)
    biased = diagnosis.slot_bias(PlantedBackbone([0, 2.0, 0, -1.0]), TEXTS, labels)
    assert biased.spread == pytest.approx(3, abs=1e-9)


def test_fewer_orders_than_labels_still_find_the_slot():
    found = diagnosis.slot_bias(PlantedBackbone([0, 0, 6.0]), TEXTS, LABELS, orders=3)
    assert len(found.orders) == 3
    assert found.strongest == 2


def test_slot_bias_needs_something_to_permute():
    with pytest.raises(SetScoreError, match="at least 2 labels and 2 orders, got 1 and 4"):
        diagnosis.slot_bias(PlantedBackbone(), TEXTS, LabelSet.of(["oil"]))


def test_rates_and_their_deviation():
    gold = np.array([[1, 0], [1, 0], [0, 0], [0, 1]], dtype=bool)
    decided = np.array([[1, 1], [1, 1], [1, 0], [1, 0]], dtype=bool)
    rates = diagnosis.label_rates(gold, decided)
    assert rates.predicted.tolist() == [1.0, 0.5]
    assert rates.deviation == pytest.approx((0.5 + 0.25) / 2)
    assert diagnosis.label_rates(gold, gold).deviation == 0


def test_an_empty_document_shows_what_a_label_says_by_itself():
    backbone = PlantedBackbone()
    found = diagnosis.empty_document_bias(backbone, EXPRESS, LABELS)
    assert found.tolist() == [backbone.affinity("", name) for name in NAMES]


def test_a_template_does_not_differ_from_itself():
    gold = np.zeros((len(TEXTS), 5), dtype=bool)
    gold[:, 0] = True
    same = measured(PlantedBackbone(), gold, templates=("express", "writer-expresses")).wordings
    assert [one.template for one in same] == ["express", "writer-expresses"]
    assert [one.flips for one in same] == [0, 0]  # the planted answers know only the label
    assert same[1].correlation == pytest.approx(1)
    u = np.array([[1.0, -1.0], [2.0, -3.0]])
    turned = diagnosis.wordings_of(["one", "other"], [u, u * [[1, 1], [-1, 1]]], gold=u > 0)
    assert [one.flips for one in turned] == [0, 0.25]
    assert [one.micro_f1 for one in turned] == pytest.approx([1, 2 / 3])


def test_mass_is_there_only_where_it_is_offered():
    backbone = PlantedBackbone()
    mass = diagnosis.answer_mass(backbone, EXPRESS, TEXTS, LABELS.texts)
    assert mass.shape == (12, 5)

    class Silent:
        spec = backbone.spec

    assert diagnosis.answer_mass(Silent(), EXPRESS, TEXTS, LABELS.texts) is None


def test_a_probe_tells_sharper_answers_from_weaker_slots():
    class Sharp(PlantedBackbone):
        def affinity(self, document, label):
            return 3 * super().affinity(document, label)

    gold = np.array([[PlantedBackbone().affinity(text, name) > 0 for name in NAMES] for text in TEXTS])
    base, sharp, calm = (
        measured(one, gold, name=name)
        for name, one in (("base", PlantedBackbone([8.0])), ("sharp", Sharp([8.0])), ("calm", PlantedBackbone([1.0])))
    )
    # A per-label question has one slot too, the first: the bias there is part of every answer.
    assert sharp.probe.separation == pytest.approx(3 * base.probe.separation)
    assert sharp.probe.slot_spread > 6
    assert calm.probe.slot_spread < 1.5
    assert calm.probe.first_slot < base.probe.first_slot
    assert base.probe.mass == 0.5
    one = measured(PlantedBackbone(), gold[:, :1], labels=LabelSet.of(["oil"]))
    assert one.probe.slot_spread is one.probe.first_slot is None  # nothing to permute
    assert "at least 2 labels" in one.no_slots
    words = in_words(base, LABELS, calm)
    assert "calm has the calmer slots" in words
    assert "base is the sharper one" in words


def measured(backbone, gold, *, labels=LABELS, templates=("express",), **options):
    return diagnosis.diagnose(backbone, TEXTS, labels, gold, templates, **options)


def test_the_summary_says_what_was_planted():
    gold = np.array([[PlantedBackbone().affinity(text, name) > 2 for name in NAMES] for text in TEXTS])
    collapsed = measured(PlantedBackbone([0, 0, 9.0]), gold, orders=5)
    words = in_words(collapsed, LABELS)
    assert "slot 3 adds +7.2 log-odds to whichever label stands there (100% positive" in words
    assert "too often, so calibrate before you decide" in words
    assert "The two answers together have 50% of the probability." in words
    top = NAMES[int(np.argmax(collapsed.empty))]
    assert f"Without a document to read, {top!r} comes nearest to yes" in words
    assert "no place stands out: slots differ by 0.00 log-odds" in in_words(measured(PlantedBackbone(), gold), LABELS)

    class Deaf(PlantedBackbone):
        def affinity(self, document, label):
            return -3.0

    deaf = measured(Deaf([0.6]), gold, orders=5)
    assert "follow the place more than the label: slots differ by 0.60 log-odds, labels by 0.00" in in_words(
        deaf, LABELS
    )
    rare = measured(PlantedBackbone(), np.ones_like(gold))
    assert "too rarely, so calibrate" in in_words(rare, LABELS)


class ByName(PlantedBackbone):
    """The log-odds of a label stand at the end of its name; the first two documents get a point less."""

    def affinity(self, document, label):
        return float(label.split()[-1]) - (1 if document in TEXTS[:2] else 0)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["oil 1", "K-417 -2.6"], "'K-417 -2.6' says yes to none of 12 documents; its highest probability is 0.07."),
        (
            ["oil 1", "K-417 -2.6", "K-9 -4", "even 0"],
            "3 labels say yes to none of 12 documents, in brackets the highest probability of each:"
            " 'K-9 -4' (0.02), 'K-417 -2.6' (0.07), 'even 0' (0.50).",
        ),
        (
            [f"K -{number}" for number in range(1, 8)],
            "7 labels say yes to none of 12 documents, in brackets the highest probability of each:"
            " 'K -7' (0.00), 'K -6' (0.00), 'K -5' (0.01), 'K -4' (0.02), 'K -3' (0.05) and 2 more.",
        ),
        (["oil 1", "gas 1.5"], "1 label says yes to nearly every document: 'gas 1.5' (12 of 12)."),
        (
            ["oil 1", *(f"K {number}" for number in range(2, 8))],
            "6 labels say yes to nearly every document: 'K 2' (12 of 12), 'K 3' (12 of 12), 'K 4' (12 of 12),"
            " 'K 5' (12 of 12), 'K 6' (12 of 12) and 1 more.",
        ),
    ],
)
def test_labels_that_say_the_same_of_all_documents_are_named(names, said):
    labels = LabelSet.of(names)
    words = in_words(measured(ByName(), None, labels=labels), labels)
    assert f"whether that is right. {said} Without a document to read," in words


def test_a_label_that_says_yes_to_some_documents_is_not_named():
    labels = LabelSet.of(["oil 1", "sports 0.1"])  # no to two documents of twelve, yes to the others
    words = in_words(measured(ByName(), None, labels=labels), labels)
    assert not any(said in words for said in ("yes to none", "yes to nearly every", "near 0.5"))


def test_a_label_that_is_gold_nearly_everywhere_may_say_yes_there():
    labels = LabelSet.of(["oil 2", "gas 3"])
    gold = np.ones((len(TEXTS), 2), dtype=bool)
    gold[4:, 1] = False
    said = "1 label says yes to nearly every document: 'gas 3' (12 of 12, gold 4)."
    assert said in in_words(measured(ByName(), gold, labels=labels), labels)


class Even(PlantedBackbone):
    def affinity(self, document, label):
        return (0.3 if document == TEXTS[0] else -0.2) * (10 if label == "oil" else 1)


def test_labels_that_no_document_moves_away_from_an_even_chance_are_named():
    labels = LabelSet.of(["oil", "K-417"])
    means = "has a probability near 0.5 whatever the document, so neither yes nor no means much"
    assert f"1 label {means}: 'K-417' (0.45 to 0.57). Without" in in_words(
        measured(Even(), None, labels=labels), labels
    )


def test_few_documents_say_nothing_of_all_documents():
    labels = LabelSet.of(["oil 3", "K-417 0"])
    few = diagnosis.diagnose(ByName(), TEXTS[2:6], labels, None, ("express",))
    words = in_words(few, labels)
    assert "'K-417 0' says yes to none of 4 documents" in words
    assert not any(said in words for said in ("nearly every", "near 0.5"))


@pytest.mark.parametrize(
    ("name", "added"),
    [
        ("setscore-small", "0.8 with setscore-small; `classify --competition 0` leaves it out"),
        ("llada-8b-instruct", "with llada-8b-instruct none unless --competition asks for it"),
    ],
)
def test_it_is_said_that_competition_is_not_part_of_the_numbers(name, added):
    assert without_competition(backbone_spec(name)) == (
        f"Numbers here are without competition between labels, which `classify` adds before `fit` ({added})."
    )


def test_without_gold_labels_the_rest_is_the_same():
    gold = np.array([[PlantedBackbone().affinity(text, name) > 2 for name in NAMES] for text in TEXTS])
    templates = ("express", "writer-expresses")
    found, blind = (measured(PlantedBackbone([1.0]), one, templates=templates) for one in (gold, None))
    assert (found.log_odds == blind.log_odds).all()
    assert found.slots.spread == blind.slots.spread
    assert set(found.rates) == {diagnosis.ABOVE, diagnosis.MATCHED}
    assert set(blind.rates) == {diagnosis.ABOVE}
    assert blind.rates[diagnosis.ABOVE].deviation is None
    assert [one.micro_f1 for one in blind.wordings] == [None, None]
    assert blind.probe.separation is None
    assert "without gold labels it is not known" in in_words(blind, LABELS)


def test_progress_counts_every_document_of_every_kind_of_work():
    told = {}
    gold = np.zeros((len(TEXTS), 5), dtype=bool)

    def tell(what, done, total):
        told[what] = (done, total)

    measured(PlantedBackbone(), gold, templates=("express", "writer-expresses"), orders=3, progress=tell)
    n = len(TEXTS)
    assert told == {
        "all labels in one prompt, 3 orders": (3 * n, 3 * n),
        "label by label, express": (n, n),
        "label by label, writer-expresses": (n, n),
    }


@pytest.mark.parametrize("count", [3, 100])
def test_pictures_are_drawn_for_few_and_many_labels(tmp_path, count):
    pytest.importorskip("matplotlib")
    labels = LabelSet.of([f"a label with a name of its own, number {number}" for number in range(count)])
    found = diagnosis.slot_bias(PlantedBackbone([4.0, 2.0, 1.0]), TEXTS, labels)
    draw_slot_bias(tmp_path / "in" / "slots.png", found, labels.names, "title")
    rates = diagnosis.LabelRates(np.linspace(0, 1, count), np.linspace(1, 0, count))
    draw_label_rates(tmp_path / "rates.png", {"log-odds > 0": rates, "matched": rates}, labels.names, "title")
    blind = diagnosis.LabelRates(np.linspace(0, 1, count), None)
    draw_label_rates(tmp_path / "blind.png", {"log-odds > 0": blind}, labels.names, "title")
    draw_label_bias(tmp_path / "bias.png", np.linspace(-3, 3, count), labels.names, "title")
    for name in ("in/slots.png", "rates.png", "blind.png", "bias.png"):
        assert (tmp_path / name).stat().st_size > 5000
