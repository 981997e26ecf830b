"""Scorers with all labels in one prompt: unary and permutation scoring, the masking law, and what each one costs."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from fakes import PlantedBackbone
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from setscore import theory
from setscore.errors import BackboneError, SetScoreError, TemplateError
from setscore.prompts import SET_LAYOUTS, SetTemplate, Template
from setscore.records import LabelSet
from setscore.scorers import PerLabelScorer, Reading, make
from setscore.scorers.base import mask_set
from setscore.scorers.permutation import PermutationScorer
from setscore.scorers.unary import UnaryScorer

TEXTS = ["Crude prices fell again.", "The match ended two to one.", "Rain is expected in the north."]
NAMES = ["oil", "sports", "weather", "music"]
EXPRESS = Template.of("express")
PER_LABEL = PerLabelScorer(EXPRESS)
biases = st.lists(st.floats(-5, 5), min_size=4, max_size=4)


def in_order(scorer, backbone, text=TEXTS[0]):
    """Scores by place for an order of the labels, as the theory's check wants them."""

    def score(order):
        labels = LabelSet.of([NAMES[i] for i in order])
        return scorer.score(backbone, [text], labels).log_odds[0]

    return score


def written(template):
    query = template.query("DOC", ["a", "b", "c"], [None, True, False])
    return (
        query.prefix
        + query.document
        + "".join(
            piece if isinstance(piece, str) else {None: "[MASK]", True: "yes", False: "no"}[piece.answer]
            for piece in query.question
        )
    )


def test_the_prompt_is_the_papers_word_for_word():
    assert written(SetTemplate()) == (
        "Decide whether each candidate label applies. Use one token per label, in order.\n\nDocument:\nDOC\n\n"
        "Labels:\n- a\n- b\n- c\n\nAnswers:\n[MASK];yes;no"
    )


def test_an_inline_answer_stands_behind_its_label():
    assert written(SET_LAYOUTS["inline"]) == (
        "Decide whether each candidate label applies.\n\nDocument:\nDOC\n\nLabels:\n- a:[MASK]\n- b:yes\n- c:no"
    )
    around = SetTemplate("{document} <{labels}> end", item="{label}=", between=",", inline=True)
    assert written(around) == "DOC <a=[MASK],b=yes,c=no> end"


class Listening(PlantedBackbone):
    """Keeps what it is asked."""

    def __init__(self, layout):
        super().__init__()
        self.spec, self.asked = replace(self.spec, set_layout=layout), []

    def log_odds(self, queries):
        self.asked += queries
        return super().log_odds(queries)


def asked_by(name, layout):
    backbone = Listening(layout)
    scorer = make(name, EXPRESS, Reading())
    scorer.score(backbone, [TEXTS[0]], LabelSet.of(NAMES))
    texts = [piece for piece in backbone.asked[-1].question if isinstance(piece, str)]
    return "paper" if ";" in texts else "inline" if all(text.endswith(":") for text in texts) else "neither"


@pytest.mark.parametrize("name", ["unary", "unary?contexts=2", "permutation?orders=1", "jsr", "gibbs?sweeps=2"])
@pytest.mark.parametrize("known", ["paper", "inline"])
def test_labels_are_written_as_the_backbone_knows_them_or_as_asked(name, known):
    assert asked_by(name, known) == known
    for wanted in ("paper", "inline"):
        assert asked_by(f"{name}{'&' if '?' in name else '?'}layout={wanted}", known) == wanted


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("unary?layout=table", "layout of the scorer unary"),
        ("subset?layout=inline", "option of the scorer subset"),
        ("milp?layout=inline", "option of the scorer milp"),
        ("unary?layouts=inline", "layout"),
        ("unary?layout=paper&layout=inline", "given twice"),
    ],
)
def test_a_layout_that_is_not_there_is_an_error(name, said):
    with pytest.raises(SetScoreError, match=said):
        make(name, EXPRESS, Reading())


@pytest.mark.parametrize("text", ["{labels} {document}", "{document}", "{labels}", "{document} {labels} {labels}"])
def test_a_prompt_without_its_two_places_is_an_error(text):
    with pytest.raises(TemplateError, match=r"\{document\} once, then \{labels\} once"):
        SetTemplate(text)


def test_with_one_label_unary_is_per_label():
    labels, one = LabelSet.of(["oil"]), PlantedBackbone()
    alone = PER_LABEL.score(one, TEXTS, labels).log_odds
    assert (UnaryScorer().score(one, TEXTS, labels).log_odds == alone).all()
    like = UnaryScorer(prompt=SetTemplate.like(EXPRESS))  # asks the very same query, so on any backbone
    assert like.prompt.query("d", ["oil"], [None]) == EXPRESS.query("d", "oil")
    assert (like.score(PlantedBackbone(bias=[3]), TEXTS, labels).log_odds == alone + 3).all()


@given(biases)
@settings(deadline=None)
def test_a_slot_bias_moves_unary_scores_and_never_per_label_ones(bias):
    """A per-label question has one slot, the first: its bias is in every score, and moves none of them."""
    backbone, every = PlantedBackbone(bias), list(itertools.permutations(range(4)))
    assert theory.is_permutation_invariant(in_order(PER_LABEL, backbone), every)
    plain = in_order(PER_LABEL, PlantedBackbone())(range(4))
    assert in_order(PER_LABEL, backbone)(range(4)) == pytest.approx(plain + bias[0])
    moved = theory.order_deviation(in_order(UnaryScorer(), backbone), every)
    assert moved == pytest.approx(np.ptp(bias), abs=1e-9)


@given(biases)
@settings(deadline=None, max_examples=20)
def test_the_mean_over_all_orders_is_order_free(bias):
    scorer, backbone = PermutationScorer(orders=24), PlantedBackbone(bias)
    assert theory.order_deviation(in_order(scorer, backbone), itertools.permutations(range(4))) < 1e-9
    plain = in_order(UnaryScorer(), PlantedBackbone())(range(4))
    assert in_order(scorer, backbone)(range(4)) == pytest.approx(plain + np.mean(bias))


def test_scores_go_back_to_the_label_they_belong_to():
    """Without a bias every order says the same, so any mix-up of places and labels would show."""
    labels = LabelSet.of(NAMES)
    plain = PER_LABEL.score(PlantedBackbone(), TEXTS, labels).log_odds
    for orders in (1, 2, 4, 8):
        found = PermutationScorer(orders=orders).score(PlantedBackbone(), TEXTS, labels).log_odds
        assert found == pytest.approx(plain)


def test_contexts_average_over_what_the_other_answers_say():
    labels = LabelSet.of(NAMES)
    free = UnaryScorer(contexts=3).score(PlantedBackbone(), TEXTS, labels).log_odds
    assert free == pytest.approx(PER_LABEL.score(PlantedBackbone(), TEXTS, labels).log_odds)  # nothing depends on them
    pulled = PlantedBackbone(pull=1.0)
    several, first = (UnaryScorer(contexts=k).score(pulled, TEXTS, labels).log_odds for k in (4, 1))
    assert np.abs(several - first).max() > 0.1
    again = UnaryScorer(contexts=4).score(pulled, TEXTS[::-1], labels).log_odds[::-1]
    assert (again == several).all()  # neither order nor company of a document matters


def test_permutation_takes_the_contexts_of_algorithm_one():
    """Algorithm 4 calls Algorithm 1 with K: one order in the given places is unary scoring itself."""
    labels, backbone = LabelSet.of(NAMES), PlantedBackbone([2.0, -1.0], pull=1.0)

    class Given(PermutationScorer):
        def drawn(self, labels):
            return [tuple(range(labels))]

    one = Given(orders=1, contexts=3).score(backbone, TEXTS, labels).log_odds
    assert (one == UnaryScorer(contexts=3).score(backbone, TEXTS, labels).log_odds).all()
    free = PlantedBackbone([2.0, -1.0])  # without a pull contexts change nothing, so the biases average as before
    several, plain = (PermutationScorer(orders=24, contexts=k).score(free, TEXTS, labels).log_odds for k in (3, 1))
    assert several == pytest.approx(plain)
    pulled = [PermutationScorer(orders=4, contexts=k).score(backbone, TEXTS, labels).log_odds for k in (4, 1)]
    assert np.abs(pulled[0] - pulled[1]).max() > 0.1


def test_the_masking_law():
    """Chi-square tests of sizes and, given the size, of subsets; with 8 tests at 1e-4 a true law fails 1 in 1250."""
    random, m = np.random.default_rng(7), 4
    for own in (0, 3):
        drawn = np.array([mask_set(random, m, own) for _ in range(8000)])
        assert drawn[:, own].all()
        others = np.delete(drawn, own, axis=1)
        sizes = others.sum(axis=1)
        assert chisquare(np.bincount(sizes, minlength=m)).pvalue > 1e-4  # uniform on 0..m-1
        for size in (1, 2):
            numbers = others[sizes == size] @ [1, 2, 4]
            subsets = [sum(1 << i for i in chosen) for chosen in itertools.combinations(range(3), size)]
            assert set(numbers) == set(subsets)
            assert chisquare([(numbers == subset).sum() for subset in subsets]).pvalue > 1e-4


@pytest.mark.parametrize("attention", ["exact", "shared"])
@pytest.mark.parametrize(
    "name", ["per_label", "unary", "unary?contexts=3", "permutation?orders=8", "permutation", "permutation?contexts=2"]
)
def test_the_stated_cost_is_what_is_counted(name, attention):
    scorer, backbone = make(name, EXPRESS, Reading()), PlantedBackbone(attention=attention)
    wanted = np.array([[True] * 4, [True, False, True, False], [False] * 4])
    scores = scorer.score(backbone, TEXTS, LabelSet.of(NAMES), candidates=wanted)
    shared = attention == "shared"
    assert scores.forwards == sum(scorer.cost(count, shared=shared) for count in (4, 2, 0))
    assert (np.isfinite(scores.log_odds) == wanted).all()
    if not shared:
        assert backbone.queries == scores.forwards


def test_windows_of_long_documents_are_pooled():
    text, labels = "oil and rain. " * 400, LabelSet.of(NAMES)
    backbone = PlantedBackbone()
    cut = UnaryScorer().score(backbone, [text], labels)
    whole = UnaryScorer(reading=Reading("chunk", "max")).score(backbone, [text], labels)
    assert cut.truncated.tolist() == [True]
    assert whole.truncated.tolist() == [False]
    assert whole.forwards > 1
    assert (whole.log_odds >= cut.log_odds).all()  # the largest of several windows, the first among them


def test_progress_counts_documents():
    done = []
    UnaryScorer().score(PlantedBackbone(), TEXTS, LabelSet.of(NAMES), progress=lambda *told: done.append(told))
    assert done[-1] == ("scoring", len(TEXTS), len(TEXTS))


def test_many_orders_are_watched_as_closely():
    """Eight times the orders are asked of an eighth of the windows, so that progress is told as often."""
    done = []
    scorer, labels = PermutationScorer(orders=1000), LabelSet.of(["one", "two"])
    assert (PermutationScorer(orders=8).block, PermutationScorer(orders=64).block, scorer.block) == (256, 32, 2)
    scorer.score(PlantedBackbone(), TEXTS[:1] * 5, labels, progress=lambda *told: done.append(told[1]))
    assert done == [2, 4, 5]


def test_labels_that_leave_no_room_are_an_error():
    labels = LabelSet.of([f"label number {i}" for i in range(2000)])
    with pytest.raises(BackboneError, match=r"2000 labels in one prompt .* use the scorer per_label"):
        UnaryScorer().score(PlantedBackbone(), TEXTS, labels)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("unari", "unknown scorer 'unari'. Did you mean 'unary'"),
        ("unary?context=2", "unknown option of the scorer unary 'context'. Did you mean 'contexts'"),
        ("unary?contexts", "written unary\\?option=value"),
        ("unary?contexts=many", "contexts of the scorer unary is a whole number, got 'many'"),
        ("unary?contexts=0", "1 or more, got 0"),
        ("permutation?orders=0", "from 1 to 1000, got 0"),
        ("permutation?contexts=0", "number of mask contexts, 1 or more, got 0"),
        ("per_label?orders=2", "per_label has no options"),
        ("jsr?rule=global", "unknown rule 'global'"),
        ("jsr?sweeps=-1", "sweeps from 0"),
        ("permutation?orders=100000", "from 1 to 1000, got 100000: each is a prompt for every document"),
        ("jsr?seed=jsr", "seed of the scorer jsr is a scorer that starts from nothing, per_label, .*; got 'jsr'"),
        ("bp?seed=gibbs", "seed of the scorer bp is a scorer that starts from nothing"),
        ("jsr?seed=unari", "option seed of the scorer jsr: unknown scorer 'unari'"),
        ("gibbs?sweeps=1", "sweeps from 2"),
        ("bp?strength=-1", "0 or more, got -1"),
        ("milp?constraints=some", "unknown constraints 'some'"),
        ("milp?support=0", "support above 0"),
        ("subset?tokens=0", "1 or more, got 0"),
    ],
)
def test_mistakes_are_explained(name, message):
    with pytest.raises(SetScoreError, match=message):
        make(name, EXPRESS, Reading())
