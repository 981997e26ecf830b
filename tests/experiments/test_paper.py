"""The paper's numbers: every cell has one name, and no contradiction is left without a decision."""

from collections import defaultdict
from fnmatch import fnmatchcase

import pytest

from setscore.baselines.text_to_set import T5_SETTINGS
from setscore.baselines.training import Settings
from setscore.calibration.paper import TEMPERATURES, THRESHOLDS
from setscore.datasets import DATASETS
from setscore.errors import SetScoreError
from setscore.experiments import paper
from setscore.experiments.evaluation import VALIDATION_SIZE
from setscore.metrics.measures import ECE_BINS
from setscore.theory import f1_ceiling

ROUNDING = 0.06  # of numbers with one decimal


def test_every_cell_has_a_name_of_its_own():
    tables = paper.facts()["tables"]
    wanted = sum(len(table["rows"]) * len(table["measures"]) for table in tables.values())
    assert len([cell for cell in paper.cells().values() if cell.table != paper.SCALARS]) == wanted == 748
    assert len(paper.cells()) - wanted == 99  # single numbers of the text


def test_methods_and_datasets_are_known():
    tables = paper.facts()["tables"]
    methods = {row["method"] for table in tables.values() for row in table["rows"] if "method" in row}
    datasets = {cell.dataset for cell in paper.cells().values() if cell.table != paper.SCALARS}
    assert methods == set(paper.facts()["methods"])
    assert datasets - {""} <= set(DATASETS)
    assert "ecthr-b" not in datasets  # the paper's ECtHR is task A


def value(name):
    return paper.cell(name).printed


def test_what_the_paper_subtracts_are_the_cells_that_were_transcribed():
    """Differences that the paper prints, from the cells that they are of: a slip of either would show."""
    main = "main/{}_{}_per_label/{}/{}"
    for cell in [cell for cell in paper.cells().values() if cell.table == "dream_delta"]:
        family, measure = cell.row.split("_")[0], cell.measure.removeprefix("delta_")
        base, instruct = (value(main.format(family, kind, cell.dataset, measure)) for kind in ("base", "instruct"))
        assert instruct - base == pytest.approx(cell.printed, abs=2 * ROUNDING), cell.name
    for cell in [cell for cell in paper.cells().values() if cell.measure == "delta"]:
        place = cell.name.removesuffix("delta")
        assert value(f"{place}instruct") - value(f"{place}base") == cell.printed, cell.name
    for seed, last in (("biased_seed", 3), ("per_label_seed", 2)):
        for dataset in ("goemotions", "reuters"):
            losses = value(f"scalars/jsr/loss_{seed}_{dataset}")
            for measure, loss in zip(("micro", "macro"), losses, strict=True):
                first, end = (value(f"jsr_{seed}/{sweep}/{dataset}/{measure}") for sweep in (0, last))
                assert first - end == pytest.approx(loss), (seed, dataset, measure)


@pytest.mark.parametrize(
    "place",
    [
        ("full_matrix", "llada_base_jsr", "aapd", "micro"),  # not run
        ("main", "llada_instruct_per_label", "ecthr-b", "micro"),  # not a dataset of the paper
        ("hparams_supervised", "optimizer", "", "bert"),  # a word
    ],
)
def test_where_there_is_no_number(place):
    assert paper.printed(*place) is None


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: paper.cell("main/llada_instruct_per_label/reuters/mirco"),
            "the paper has no cell 'main/llada_instruct_per_label/reuters/mirco'. Did you mean"
            " 'main/llada_instruct_per_label/reuters/micro'? A name is table/row/dataset/measure.",
        ),
        (
            lambda: paper.printed("cross_encoder_nli", "deberta", "reuters", "micro"),
            "unknown row of the paper's table cross_encoder_nli 'deberta'. Known: cross_encoder_nli_deberta.",
        ),
    ],
)
def test_a_wrong_name_is_an_error(ask, message):
    with pytest.raises(SetScoreError) as raised:
        ask()
    assert str(raised.value) == message


def test_an_unknown_table_is_an_error():
    with pytest.raises(SetScoreError, match=r"^unknown table of the paper 'mian'\. Did you mean 'main'\? Known: "):
        paper.printed("mian", "bert", "reuters", "micro")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("main/llada_instruct_per_label/reuters/micro", "main/llada_instruct_per_label/reuters/micro"),  # undisputed
        ("jsr_per_label_seed/0/reuters/macro", "main/llada_instruct_per_label/reuters/macro"),
        ("jsr_biased_seed/0/goemotions/micro", "full_matrix/llada_base_unary/goemotions/micro"),
        ("jsr_biased_seed/1/goemotions/micro", "jsr_biased_seed/1/goemotions/micro"),
        ("full_matrix/llada_instruct_best_prompt/goemotions/macro", "prompt_sweep/feeling/goemotions/macro"),
        ("full_matrix/llada_instruct_best_prompt/reuters/macro", "prompt_sweep/main_topic/reuters/macro"),
        (
            "ablation_reuters/llada_instruct_best_prompt/reuters/micro",
            "multiseed/llada_instruct_best_prompt/reuters/micro_mean",
        ),
        ("dream_delta/llada_8b/eurlex/delta_macro", "dream_delta/llada_8b/eurlex/delta_macro"),
    ],
)
def test_which_number_a_cell_is_compared_with(name, other):
    assert paper.target(name).value == value(other) is not None


@pytest.mark.parametrize(
    "name",
    [
        "full_matrix/llada_base_jsr/reuters/micro",
        "full_matrix/llada_instruct_best_prompt/aapd/micro",
        "ensemble/blend_bart_t_0_25_setfit_0_5_llada_instruct_0_25/reuters/micro",
        "calibration_headroom/llada_per_label_checkpoint_not_named/goemotions/oracle_macro",
        "scalars/cost/llada_memory",
    ],
)
def test_what_nothing_is_compared_with(name):
    assert value(name) is not None
    assert paper.target(name).value is None
    assert paper.target(name).reason


def test_tolerances_and_differences_are_those_of_the_printed_numbers():
    seed = "jsr_biased_seed/0/goemotions/micro"
    assert abs(value(seed) - paper.target(seed).value) <= paper.target(seed).tolerance
    for measure in ("micro", "macro"):
        blend = value(f"ensemble/blend_bart_t_0_25_setfit_0_5_llada_instruct_0_25/reuters/{measure}")
        gap = paper.target(f"scalars/ablation_claims/ensemble_gap_to_t5_{measure}").value
        assert value(f"supervised/t5/reuters/{measure}") - blend == pytest.approx(gap)


def test_every_decision_is_about_a_cell_and_says_why():
    for entry in paper.facts()["targets"]:
        assert entry["reason"].endswith(".")
        for pattern in entry["cells"]:
            matching = [name for name in paper.cells() if fnmatchcase(name, pattern)]
            assert matching, pattern
            assert {paper.target(name).reason for name in matching} == {entry["reason"]}, pattern


def test_the_ceilings_are_those_of_the_printed_recalls():
    for k in (16, 32, 64, 100):
        recall = paper.printed("shortlist_recall", str(k), "eurlex", "recall") / 100
        target = paper.target(f"shortlist_recall/{k}/eurlex/micro_f1_ceiling").value
        assert 100 * f1_ceiling(recall) == pytest.approx(target, abs=ROUNDING)


def test_no_contradiction_is_left_open():
    """One method on one dataset, printed in several tables: the targets agree to rounding, or there are none."""
    found = defaultdict(dict)
    for cell in paper.cells().values():
        if same := same_thing(cell):
            found[same][cell.name] = paper.target(cell.name).value
    several = {key: values for key, values in found.items() if len(values) > 1}
    assert len(several) > 150
    for key, values in several.items():
        numbers = [number for number in values.values() if number is not None]
        assert not numbers or max(numbers) - min(numbers) <= 2 * ROUNDING, (key, values)


SINGLE_SEED = {"main", "full_matrix", "supervised", "dream_replication", "ensemble", "direct_subset"}
SWEPT = {"prompt_sweep", "prompt_sweep_body"}


def same_thing(cell):
    """What a cell measures, in the same words in every table; None for what stands in one table alone."""
    if cell.table in SINGLE_SEED:
        return cell.row, cell.dataset, cell.measure
    if cell.table == "ablation_reuters" and cell.row != "llada_instruct_best_prompt":
        return (cell.row, cell.dataset, cell.measure) if "std" not in cell.measure else None
    if cell.table in SWEPT:
        return "llada_instruct_per_label" + f".{cell.row}" * (cell.row != "express"), cell.dataset, cell.measure
    if cell.table in ("jsr_biased_seed", "jsr_per_label_seed") and cell.row == "0":
        method = {"jsr_biased_seed": "llada_base_unary", "jsr_per_label_seed": "llada_instruct_per_label"}[cell.table]
        return method, cell.dataset, cell.measure
    if cell.table == "permutation_averaging" and cell.row in ("1", "4"):
        return "llada_base_unary" + "_perm4" * (cell.row == "4"), cell.dataset, cell.measure
    return None


def test_the_settings_in_the_code_are_the_papers():
    stated = paper.facts()["setup"]
    assert sorted(TEMPERATURES) == stated["calibration"]["temperature_grid"]
    assert sorted(THRESHOLDS) == stated["calibration"]["tau_grid"]
    assert stated["slices"]["validation_size"] == VALIDATION_SIZE
    assert stated["metrics"]["ece_bins"] == ECE_BINS
    for method, settings in (("bert", Settings()), ("roberta", Settings()), ("t5", T5_SETTINGS)):
        given = {name: paper.printed("hparams_supervised", name, "", method) for name in ("learning_rate", "epochs")}
        assert given == {"learning_rate": settings.learning_rate, "epochs": settings.epochs}, method
