"""The protocol "paper", point by point, against what the paper says of itself (paper.json)."""

import json

import numpy as np
import pytest
from checkpoints import qwen_tokenizer
from commands import invoke
from fakes import FakeBackbone, PlantedBackbone
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import write_goemotions

from setscore import LabelSet, SetScoreClassifier
from setscore.backbones.asking import Prompter
from setscore.backbones.specs import FAMILY_SPECS
from setscore.backbones.tokens import TextTokenizer
from setscore.calibration.paper import STRATEGIES, TEMPERATURES, THRESHOLDS, PaperCalibration
from setscore.datasets import DATASETS
from setscore.errors import SetScoreError
from setscore.experiments import paper
from setscore.experiments.deciding import decide
from setscore.experiments.evaluation import PAPER_SETS, Trial
from setscore.experiments.protocol import PAPER, VALIDATION, best, made_under, protocol, validation_micro_f1
from setscore.experiments.reproduction import registry
from setscore.experiments.runs.config import make_config
from setscore.experiments.scored import Scored
from setscore.experiments.yardsticks import every_label
from setscore.prompts import LAYOUTS, SET_LAYOUTS, Template, Verbalizer
from setscore.scorers import Reading, make
from setscore.shortlist import Shortlist

SETUP = paper.facts()["setup"]


def scored(log_odds, gold, name="d"):
    log_odds, gold = np.asarray(log_odds, dtype=float), np.asarray(gold, dtype=bool)
    ids, labels = (tuple(map(str, range(size))) for size in log_odds.shape)
    return Scored(name, "test", labels, ids, log_odds, gold, np.zeros(len(ids), dtype=bool))


# 1. Grids, strategies, slices, truncation, no read-out


def test_grids_strategies_and_seeds_are_the_papers():
    calibration = SETUP["calibration"]
    assert sorted(TEMPERATURES) == calibration["temperature_grid"]
    assert sorted(THRESHOLDS) == calibration["tau_grid"]
    assert len(STRATEGIES) == len(calibration["strategies"])
    assert PAPER.seeds == (SETUP["seeds"]["headline"],)
    assert list(registry.REPLICATION) == SETUP["seeds"]["replication"]
    assert SETUP["slices"]["validation_size"] == VALIDATION
    assert {name: DATASETS[name].test_size for name in registry.sizes()} == SETUP["slices"]["test_sizes"]


def test_documents_are_cut_at_the_papers_tokens_and_nothing_is_learned_or_mixed_in():
    config = make_config({"protocol": "paper", "dataset": {"name": "reuters"}}).resolved()
    assert Reading().max_document_tokens == SETUP["truncation"]["max_document_tokens"]
    method = config.method
    assert (method.long_documents, method.head, method.blend, method.competition) == ("truncate", "none", None, None)
    assert (config.calibration, config.drawn) == ("paper", (13,))


def test_a_config_cannot_say_otherwise():
    content = {"protocol": "paper", "dataset": {"name": "reuters"}, "method": {"long_documents": "chunk"}}
    with pytest.raises(SetScoreError, match=r"the protocol 'paper' fixes method\.long_documents at 'truncate'"):
        make_config(content)
    with pytest.raises(SetScoreError, match=r"unknown protocol 'papr'\. Did you mean 'paper'\?"):
        protocol("papr")


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 300))
def test_what_is_chosen_by_is_the_micro_f1_of_the_best_strategy_on_the_slice(seed):
    rng = np.random.default_rng(seed)
    gold = rng.random((30, 3)) < 0.3
    log_odds = 3 * gold + rng.normal(size=gold.shape) * 3
    each = []
    for strategy in STRATEGIES:
        decided = PaperCalibration(strategy=strategy).fit(log_odds, gold).predict(log_odds)
        each.append(2 * (decided & gold).sum() / max(1, decided.sum() + gold.sum()))
    assert validation_micro_f1(log_odds, gold) == pytest.approx(max(each))


def test_of_equal_templates_the_default_stays():
    assert best([0.3, 0.5, 0.5]) == 1
    assert best([0.5, 0.5]) == 0


def test_generated_answers_are_not_calibrated():
    """A calibration that is fitted on +4 and -4 may turn decisions over; as written they stay."""
    gold = [[1, 0], [0, 1], [1, 1], [0, 0]]
    written = scored([[4, -4], [-4, -4], [4, 4], [4, -4]], gold)
    outcome, probabilities = decide(Trial(13, written, written), "own")
    assert probabilities is None
    np.testing.assert_array_equal(outcome.decisions, written.log_odds > 0)
    assert "ece" not in outcome.metrics
    for name in ("qwen2_5_7b_instruct", "t5", "llada_instruct_direct_subset"):
        assert registry.methods()[name].decided == "own"


# 2. EURLEX under its shortlist, for every prompted method and no other dataset


@pytest.mark.parametrize("dataset", list(registry.sizes()))
def test_only_eurlex_has_a_shortlist(dataset):
    k = SETUP["shortlist"]["k"].get(dataset)
    for method in ({}, {"baseline": "bart-mnli"}, {"baseline": "qwen-generate"}):
        config = make_config({"protocol": "paper", "dataset": {"name": dataset}, "method": method}).resolved()
        assert config.method.shortlist == (None if k is None else f"cosine:{k}")
    for trained in ("setfit", "bert", "flan-t5"):
        config = make_config({"protocol": "paper", "dataset": {"name": dataset}, "method": {"baseline": trained}})
        assert config.resolved().method.shortlist is None  # they see all labels


def test_every_candidate_is_every_label_that_was_asked():
    test = scored([[1.0, -np.inf], [-np.inf, 0.0]], [[1, 1], [0, 0]])
    found = every_label(test)
    assert found.name == "every candidate"
    np.testing.assert_array_equal(found.decisions, [[True, False], [False, True]])
    assert every_label(scored([[1.0, 0.0]], [[1, 0]])).name == "every label"


# 3. Two tasks, two names


def test_the_papers_ecthr_is_task_a_and_task_b_has_no_number():
    assert SETUP["datasets"]["ecthr"]["source"].endswith("ecthr_a")
    assert DATASETS["ecthr"].title.endswith("task A")
    assert DATASETS["ecthr-b"].title.endswith("task B")
    assert all(cell.dataset != "ecthr-b" for cell in paper.cells().values())
    assert all(need.dataset in PAPER_SETS or need.dataset == "ecthr" for need in _all_needs())
    assert "ecthr-b" not in {need.dataset for need in _all_needs()}


def _all_needs():
    return [need for cell in paper.cells().values() for need in registry.needs(registry.quantity_of(cell))]


# 5. Refinement, headroom, orders


@pytest.mark.parametrize("family", ["llada_base_jsr", "llada_instruct_jsr"])
def test_without_a_sweep_it_is_the_calibrated_seed_and_with_some_its_own_decisions(family):
    seed = "unary" if family == "llada_base_jsr" else "per_label"
    assert registry.methods()[f"{family}_0"].scorer == seed
    assert registry.methods()[f"{family}_0"].decided == "calibrated"
    for sweeps in (1, 2):
        method = registry.methods()[f"{family}_{sweeps}"]
        scorer = make(method.scorer, Template.of("express"), Reading())
        assert (scorer.sweeps, scorer.contexts, method.decided) == (sweeps, SETUP["scorers"]["jsr"]["K"], "own")


def test_one_order_is_the_given_one():
    labels, texts = LabelSet.of(["rain", "oil", "song"]), ["oil and rain", "a song"]
    one, given = (make(name, Template.of("express"), Reading()) for name in ("permutation?orders=1", "unary"))
    backbone = PlantedBackbone(bias=(2.0, 0.0, -1.0))
    np.testing.assert_array_equal(
        one.score(backbone, texts, labels).log_odds, given.score(backbone, texts, labels).log_odds
    )


# 6. Prompts


def test_layouts_are_those_that_the_paper_prints():
    printed = SETUP["templates"]["per_label"]
    for layout, name in {
        "paper": "verbatim_appendix_unwrapped",
        "compact": "setup_appendix",
        "line": "body_inline",
        "stop": "faq_inline",
    }.items():
        query = Template.of("express", layout).query("<doc>", "<label>")
        assert f"{query.prefix}{query.document}{query.question[0]} [MASK]" == printed[name]
    assert set(LAYOUTS) == {"paper", "compact", "line", "stop"}
    unary = SETUP["templates"]["all_masked_unary"]
    for layout, name in {"paper": "verbatim_appendix_unwrapped", "compact": "setup_appendix"}.items():
        whole = SET_LAYOUTS[layout].query("<doc>", ["<label_1>"], [None])
        start = f"{whole.prefix}{whole.document}{whole.question[0]}"
        assert unary[name].startswith(start.partition("<label_1>")[0])


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("document", ["Crude fell again.", "again", "1987 was long"])
def test_prefix_document_and_question_are_tokenised_as_one_text(layout, document):
    """A tokenizer may join the space before a document with its first word: only the whole text says how."""
    import dataclasses

    tokenizer = TextTokenizer(qwen_tokenizer())
    spec = dataclasses.replace(FAMILY_SPECS["llada"], mask_id=0)
    prompter = Prompter(spec, tokenizer, Verbalizer("yes", "no"))
    query = Template.of("express", layout).query(document, "oil")
    ((tokens, (question,)),) = prompter.documents([query]).items()
    whole = tokenizer.ids(query.prefix + query.document + query.question[0])
    assert tokens + question.tokens[:-1] == whole


def test_labels_by_name_or_by_description_are_different_questions():
    asked = {"name": LabelSet.of(["oil"]), "description": LabelSet.of({"oil": "crude oil or fuel"})}
    found = [
        SetScoreClassifier(labels, backbone=FakeBackbone()).decision_function(["crude"]) for labels in asked.values()
    ]
    assert found[0] != found[1]


PAPERS = {"long_documents": "truncate"}
CUT = {"shortlist": Shortlist.of("cosine:32").settings()}


@pytest.mark.parametrize(
    ("dataset", "decided_by", "config", "word"),
    [
        ("reuters", "paper", PAPERS, "paper"),
        ("reuters", "own", {}, "paper"),
        ("reuters", "auto", PAPERS, "setscore"),
        ("reuters", "paper?margin=0.1", PAPERS, "setscore"),
        ("reuters", "paper", {"long_documents": "auto", "windows": 2}, "setscore"),
        ("reuters", "paper", PAPERS | {"blend": "own-cosine"}, "setscore"),
        ("reuters", "paper", PAPERS | CUT, "setscore"),
        ("eurlex", "paper", PAPERS, "setscore"),
        ("eurlex", "paper", PAPERS | CUT, "paper"),
        ("eurlex", "paper", PAPERS | {"shortlist": Shortlist.of("cosine:16").settings()}, "setscore"),
    ],
)
def test_a_row_says_the_protocol_that_it_was_made_under(dataset, decided_by, config, word):
    assert made_under(dataset, decided_by, config) == word


def test_rows_of_the_commands_carry_the_word_in_tables_and_files(tmp_path):
    data, out = write_goemotions(tmp_path / "data"), tmp_path / "rows.json"
    about = ("goemotions", "--data-dir", data, "--seeds", "13", "--json", out)

    def words(*command):
        code, shown, told = invoke(*command, *about)
        assert code == 0, told
        (found,) = json.loads(out.read_text())["datasets"].values()
        return shown, found

    shown, found = words("evaluate", "--calibration", "auto,paper", "--no-yardsticks")
    names = ["auto", "paper", "learned", "threshold 0.5"]
    assert [(row["name"], row["protocol"]) for row in found["rows"]][:4] == [(name, "setscore") for name in names]
    shown, found = words("evaluate", "--calibration", "auto,paper", "--long-documents", "truncate", "--no-yardsticks")
    assert [row["protocol"] for row in found["rows"]][:3] == ["setscore", "paper", "setscore"]
    assert "protocol" in shown.splitlines()[0]
    assert next(line for line in shown.splitlines() if " paper " in line).split()[:2] == ["paper", "paper"]
    shown, found = words("compare", "--scorer", "per_label,unary", "--calibration", "paper")
    assert {row["protocol"] for row in found.values()} == {"setscore", "paper"}  # unary reads no windows
    assert "protocol" in shown.splitlines()[1]
    shown, found = words("baseline", "linear", "--checkpoint", "setscore-mini", "--train", "validation")
    assert [row["protocol"] for row in found["rows"] if row["kind"] == "model"] == ["setscore"]
    assert "protocol" in shown.splitlines()[0]
