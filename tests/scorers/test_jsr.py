"""Refinement: local and full-gain JSR and Gibbs sampling, held against the theory's functions."""

import itertools

import numpy as np
import pytest
from fakes import PlantedBackbone
from hypothesis import given, settings
from hypothesis import strategies as st

from setscore import theory
from setscore.errors import LabelError
from setscore.prompts import Template
from setscore.records import LabelSet, Slot
from setscore.scorers import Learner, PerLabelScorer, Reading, make
from setscore.scorers.gibbs import GibbsScorer
from setscore.scorers.jsr import JsrScorer
from setscore.scorers.unary import UnaryScorer

TEXTS = ["Crude prices fell again.", "The match ended two to one.", "Rain is expected in the north."]
LABELS = LabelSet.of(["oil", "sports", "weather"])
EXPRESS = Template.of("express")


class TableBackbone(PlantedBackbone):
    """Answers from a table [8, 3] by the filled answers (open slots count as no), so local scores are known."""

    def __init__(self, table, seeds=(0.0, 0.0, 0.0)):
        super().__init__()
        self.table, self.seeds = table, seeds

    def _answer(self, query):
        slots = [piece for piece in query.question if isinstance(piece, Slot)]
        if len(slots) == 1:  # a per-label question: the seed
            text = str(query.question[0])
            return np.array([next(u for u, name in zip(self.seeds, LABELS.names, strict=True) if name in text)])
        number = sum(1 << place for place, slot in enumerate(slots) if slot.answer)
        return np.array([self.table[number, place] for place, slot in enumerate(slots) if slot.answer is None])


def surrogate_table(scorer, backbone, text):
    """The surrogate of every assignment, by a scorer of no sweeps: what the refinement climbs."""
    from setscore.scorers.base import Asker, Window
    from setscore.scorers.local import State, surrogates

    window = Window(0, text, (0, 1, 2), LABELS.names)
    start = State.start(window, np.zeros(3, dtype=bool), scorer.contexts, window.generator(scorer.random_state))
    states = [State(window, start.contexts, np.array(y)) for y in itertools.product((False, True), repeat=3)]
    values = surrogates(Asker(backbone), scorer.prompt, states)
    return {tuple(state.assignment.tolist()): value for state, value in zip(states, values, strict=True)}


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
    with pytest.raises(LabelError, match="learnt about 3 labels, but 2 are asked"):
        scorer.score(backbone, TEXTS, LabelSet.of(["oil", "sports"]))


def test_batches_and_company_change_nothing():
    for scorer in (JsrScorer(sweeps=2), JsrScorer(rule="full"), GibbsScorer()):
        whole = scorer.score(PlantedBackbone(pull=0.7), TEXTS, LABELS).log_odds
        alone = [scorer.score(PlantedBackbone(pull=0.7), [text], LABELS).log_odds[0] for text in TEXTS]
        assert (whole == np.array(alone)).all()


@pytest.mark.parametrize("attention", ["exact", "shared"])
@pytest.mark.parametrize(
    "name", ["jsr", "jsr?sweeps=2&contexts=3", "jsr?sweeps=0", "jsr?rule=full", "jsr?seed=unary", "gibbs", "bp", "milp"]
)
def test_the_stated_cost_is_what_is_counted(name, attention):
    scorer, backbone = make(name, EXPRESS, Reading()), PlantedBackbone(attention=attention, pull=0.3)
    scores = scorer.score(backbone, TEXTS, LABELS)
    assert scores.forwards == len(TEXTS) * scorer.cost(3, shared=attention == "shared")
    if attention == "exact":
        assert backbone.queries == scores.forwards


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
