"""Refinement: local and full-gain JSR and Gibbs sampling, held against the theory's functions."""

import itertools

import numpy as np
import pytest
from fakes import PlantedBackbone
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_refinement import Plain

from setscore import theory
from setscore.errors import LabelError
from setscore.prompts import Template
from setscore.records import LabelSet, Slot
from setscore.scorers import Learner, PerLabelScorer, Reading, make
from setscore.scorers.base import Asker, Window
from setscore.scorers.gibbs import GibbsScorer
from setscore.scorers.jsr import JsrScorer
from setscore.scorers.local import State, surrogate, take_walks
from setscore.scorers.unary import UnaryScorer

TEXTS = ["Crude prices fell again.", "The match ended two to one.", "Rain is expected in the north."]
LABELS = LabelSet.of(["oil", "sports", "weather"])
EXPRESS = Template.of("express")


class TableBackbone(PlantedBackbone):
    """Answers from a table [8, 3] by the filled answers (open slots count as no), so local scores are known."""

    def __init__(self, table, seeds=(0.0, 0.0, 0.0), attention="exact"):
        super().__init__(attention=attention)
        self.table, self.seeds = table, seeds

    def _answer(self, query):
        slots = [piece for piece in query.question if isinstance(piece, Slot)]
        if len(slots) == 1:  # a per-label question: the seed
            text = str(query.question[0])
            return np.array([next(u for u, name in zip(self.seeds, LABELS.names, strict=True) if name in text)])
        number = sum(1 << place for place, slot in enumerate(slots) if slot.answer)
        return np.array([self.table[number, place] for place, slot in enumerate(slots) if slot.answer is None])


def surrogate_table(scorer, backbone, text):
    """The surrogate of every assignment, with the contexts that the scorer draws: what the refinement climbs."""
    window = Window(0, text, (0, 1, 2), LABELS.names)
    start = State.start(np.zeros(3, dtype=bool), scorer.contexts, window.generator(scorer.random_state))
    every = list(itertools.product((False, True), repeat=3))
    walks = [surrogate(State(start.contexts, np.array(y))) for y in every]
    return dict(zip(every, take_walks(Asker(backbone), [window] * 8, walks), strict=True))


tables = st.lists(st.floats(-4, 4), min_size=24, max_size=24).map(lambda values: np.array(values).reshape(8, 3))


@settings(deadline=None, max_examples=60)
@given(tables, st.lists(st.floats(-2, 2), min_size=3, max_size=3))
def test_full_gain_never_falls_and_ends_at_an_optimum(table, seeds):
    backbone = TableBackbone(table, seeds)
    scorer = JsrScorer(rule="full", sweeps=9, contexts=2)
    scores = scorer.score(backbone, TEXTS[:1], LABELS)
    trace = [float(scores.details[f"surrogate_{number}"][0]) for number in range(10)]
    assert trace == sorted(trace)
    values = surrogate_table(scorer, backbone, TEXTS[0])
    final = tuple((scores.log_odds[0] > 0).tolist())
    stays = [values[final] >= values[tuple(b ^ (i == place) for i, b in enumerate(final))] for place in range(3)]
    assert all(stays)
    assert trace[-1] == pytest.approx(values[final], abs=1e-9)
    assert trace[0] == pytest.approx(values[tuple(u >= 0 for u in seeds)], abs=1e-9)


def test_local_updates_follow_the_local_scores_and_can_lower_the_surrogate():
    """The counter-example's shape: the first label always wants yes, and ruins what the others say."""
    table = np.full((8, 3), 0.1)
    table[:, 0] = 2.0
    table[[1, 3, 5, 7], 1] = -9.0
    backbone = TableBackbone(table, seeds=(-1.0, 1.0, 1.0))
    start = np.array([False, True, True])
    scorer = JsrScorer(rule="local", sweeps=1, contexts=4)
    fell = 0
    for text in (f"text {number}" for number in range(20)):  # each text has its own order and contexts
        scores = scorer.score(backbone, [text], LABELS)
        assert scores.log_odds[0, 0] == pytest.approx(2.0)
        fell += scores.details["surrogate_1"][0] < scores.details["surrogate_0"][0]
        values = surrogate_table(scorer, backbone, text)
        assert scores.details["surrogate_0"][0] == pytest.approx(values[tuple(start.tolist())])
        assert scores.details["surrogate_1"][0] == pytest.approx(values[tuple((scores.log_odds[0] > 0).tolist())])
    assert fell > 0
    full = JsrScorer(rule="full", sweeps=1).score(backbone, TEXTS[:1], LABELS).details
    assert full["surrogate_1"][0] >= full["surrogate_0"][0]


def test_one_local_step_is_the_theorys():
    """With every context masking nothing else, local scores are those of the table."""
    assert theory.local_update(theory.counter_example, np.array([False, True]), 0).tolist() == [True, True]
    scores = GibbsScorer(sweeps=2, hot=1.0).score(PlantedBackbone(pull=0.0), TEXTS, LABELS)
    plain = PerLabelScorer(EXPRESS).score(PlantedBackbone(), TEXTS, LABELS)
    assert scores.log_odds == pytest.approx(plain.log_odds)  # without interaction the conditionals are the scores


def test_no_sweeps_are_the_seed_itself():
    seed = PerLabelScorer(EXPRESS)
    plain = seed.score(PlantedBackbone(), TEXTS, LABELS)
    refined = JsrScorer(sweeps=0, seed=seed).score(PlantedBackbone(), TEXTS, LABELS)
    assert (refined.log_odds == plain.log_odds).all()


def test_the_seed_is_any_scorer_and_its_decision_is_the_calibrated_one():
    backbone = PlantedBackbone()
    seeds = UnaryScorer().score(backbone, TEXTS, LABELS).log_odds
    cuts = np.array([-50.0, 0.0, 50.0])
    scorer = JsrScorer(rule="full", sweeps=1, seed=UnaryScorer()).learn(cuts, seeds > 0)
    assert isinstance(scorer, Learner)
    values = surrogate_table(scorer, backbone, TEXTS[0])
    found = scorer.score(backbone, TEXTS[:1], LABELS)
    assert found.details["surrogate_0"][0] == pytest.approx(values[tuple((seeds[0] >= cuts).tolist())])
    assert scorer.restore(scorer.learned) == scorer
    with pytest.raises(LabelError, match="learned about 3 labels, but 2 are asked"):
        scorer.score(backbone, TEXTS, LabelSet.of(["oil", "sports"]))


def test_batches_and_company_change_nothing():
    for scorer in (JsrScorer(sweeps=2), JsrScorer(rule="full"), GibbsScorer()):
        whole = scorer.score(PlantedBackbone(pull=0.7), TEXTS, LABELS).log_odds
        alone = [scorer.score(PlantedBackbone(pull=0.7), [text], LABELS).log_odds[0] for text in TEXTS]
        assert (whole == np.array(alone)).all()


class Recording(PlantedBackbone):
    """Remembers what was asked, and call by call about how many documents."""

    def __init__(self, **options):
        super().__init__(**options)
        self.asked, self.documents = [], []

    def log_odds(self, queries):
        self.asked += queries
        self.documents.append(len({query.document for query in queries}))
        return super().log_odds(queries)


pulls = st.floats(-2, 2).map(lambda value: round(value, 3))


@settings(deadline=None, max_examples=40)
@given(
    pulls,
    st.lists(st.floats(-3, 3), max_size=3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(["local", "full"]),
)
def test_refinement_decides_as_the_plain_algorithm_and_asks_each_of_its_questions_once(
    pull, bias, sweeps, contexts, rule
):
    scorer = JsrScorer(rule=rule, sweeps=sweeps, contexts=contexts)
    backbone = Recording(pull=pull, bias=bias)
    scores = scorer.score(backbone, TEXTS, LABELS)
    seeds = PerLabelScorer(EXPRESS).score(PlantedBackbone(pull=pull, bias=bias), TEXTS, LABELS).log_odds
    questions = len(TEXTS) * 3  # of the seed
    for row, text in enumerate(TEXTS):
        plain = Plain(PlantedBackbone(pull=pull, bias=bias), text, LABELS, scorer.random_state)
        y, trace = plain.jsr(seeds[row] >= 0, rule=rule, sweeps=sweeps, contexts=contexts)
        assert (scores.log_odds[row] > 0).tolist() == y.tolist()
        found = [scores.details[f"surrogate_{number}"][row] for number in range(sweeps + 1)]
        assert found == pytest.approx(trace, abs=1e-9)
        questions += len(set(plain.asked))
    assert len(set(backbone.asked)) == len(backbone.asked) == questions == scores.forwards


@settings(deadline=None, max_examples=25)
@given(pulls, st.integers(2, 6))
def test_gibbs_draws_as_the_plain_algorithm_and_asks_each_of_its_questions_once(pull, sweeps):
    scorer, backbone = GibbsScorer(sweeps=sweeps), Recording(pull=pull)
    scores = scorer.score(backbone, TEXTS, LABELS)
    seeds = PerLabelScorer(EXPRESS).score(PlantedBackbone(pull=pull), TEXTS, LABELS).log_odds
    questions = len(TEXTS) * 3
    for row, text in enumerate(TEXTS):
        plain = Plain(PlantedBackbone(pull=pull), text, LABELS, scorer.random_state)
        assert scores.log_odds[row] == pytest.approx(plain.gibbs(seeds[row] >= 0, scorer.temperatures()))
        questions += len(set(plain.asked))
    assert len(set(backbone.asked)) == len(backbone.asked) == questions == scores.forwards


@pytest.mark.parametrize("name", ["jsr?sweeps=2&contexts=3", "jsr?rule=full&sweeps=2", "gibbs"])
def test_with_shared_attention_a_forward_is_a_document_in_a_call(name):
    backbone = Recording(pull=0.3, attention="shared")
    scores = make(name, EXPRESS, Reading()).score(backbone, TEXTS, LABELS)
    assert scores.forwards == sum(backbone.documents)
    assert backbone.documents[0] == backbone.documents[1] == len(TEXTS)  # windows go on together


@pytest.mark.parametrize("attention", ["exact", "shared"])
@pytest.mark.parametrize("name", ["jsr?sweeps=0", "bp", "milp"])
def test_the_stated_cost_is_what_is_counted(name, attention):
    scorer, backbone = make(name, EXPRESS, Reading()), PlantedBackbone(attention=attention, pull=0.3)
    scores = scorer.score(backbone, TEXTS, LABELS)
    assert scores.forwards == len(TEXTS) * scorer.cost(3, shared=attention == "shared")


@pytest.mark.parametrize("attention", ["exact", "shared"])
@pytest.mark.parametrize("rule", ["local", "full"])
@settings(deadline=None, max_examples=30)
@given(table=tables, sweeps=st.integers(1, 3), contexts=st.integers(1, 3), m=st.integers(1, 3))
def test_refinement_never_costs_more_than_stated(rule, attention, *, table, sweeps, contexts, m):
    scorer = JsrScorer(rule=rule, sweeps=sweeps, contexts=contexts)
    scores = scorer.score(TableBackbone(table, attention=attention), TEXTS, LabelSet(LABELS.labels[:m]))
    assert scores.forwards <= len(TEXTS) * scorer.cost(m, shared=attention == "shared")
    gibbs = GibbsScorer(sweeps=1 + sweeps)
    found = gibbs.score(TableBackbone(table, attention=attention), TEXTS, LabelSet(LABELS.labels[:m]))
    assert found.forwards <= len(TEXTS) * gibbs.cost(m, shared=attention == "shared")


def test_the_stated_cost_is_reached():
    """By some texts, whose contexts have all other slots filled: there every label that turns over makes all new."""
    scorer, backbone = JsrScorer(contexts=1), TableBackbone(np.full((8, 3), -1.0))
    found = [scorer.score(backbone, [f"text {number}"], LABELS).forwards for number in range(300)]
    assert max(found) == scorer.cost(3, shared=False)
    two = GibbsScorer(sweeps=40, hot=1.0)
    assert two.score(TableBackbone(np.zeros((8, 3))), TEXTS[:1], LABELS).forwards == two.cost(3, shared=False) == 3 + 12


def test_windows_of_long_documents_are_refined_as_they_are_read():
    """`--long-documents chunk` reaches the refinement as well as the seed."""
    text = "oil and rain. " * 400
    for name in ("jsr", "gibbs"):
        scores = make(name, EXPRESS, Reading("chunk")).score(PlantedBackbone(), [text], LABELS)
        assert scores.truncated.tolist() == [False]
        assert make(name, EXPRESS, Reading()).score(PlantedBackbone(), [text], LABELS).truncated.tolist() == [True]


def test_full_gain_stops_early_but_never_costs_more_than_stated():
    scorer = JsrScorer(rule="full", sweeps=20)
    scores = scorer.score(PlantedBackbone(pull=0.3, attention="exact"), TEXTS, LABELS)
    assert scores.forwards < len(TEXTS) * scorer.cost(3, shared=False)


def test_annealing_ends_at_one():
    temperatures = GibbsScorer(sweeps=6, hot=8.0).temperatures()
    assert temperatures.tolist() == pytest.approx([8, 4, 2, 1, 1, 1])


def test_gibbs_has_the_marginals_of_a_known_joint():
    """Two coupled labels without a pull of their own: by symmetry each is as likely yes as no, and they agree."""
    scorer = GibbsScorer(sweeps=400, hot=1.0)
    table = np.zeros((8, 3))
    for number in range(8):
        table[number] = [2.0 if number & 2 else -2.0, 2.0 if number & 1 else -2.0, 0.5]
    found = scorer.score(TableBackbone(table), TEXTS[:1], LABELS).log_odds[0]
    assert found[2] == pytest.approx(0.5)
    assert np.abs(found[:2]).max() < 1.0  # 400 draws of a chain that turns over about every 8 sweeps
