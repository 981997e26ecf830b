"""What there is to reproduce, held against the transcription of the paper, cell by cell."""

from collections import Counter

import pytest

from setscore.backbones.specs import SPECS
from setscore.baselines import BASELINES
from setscore.errors import SetScoreError
from setscore.experiments import deciding, paper
from setscore.experiments.reproduction import registry
from setscore.prompts import QUESTIONS
from setscore.scorers import SCORERS


def test_every_printed_cell_belongs_to_one_item():
    found = Counter(asked.cell.name for item in registry.items().values() for asked in item.cells() if asked.cell)
    assert set(found) == set(paper.cells())
    assert set(found.values()) == {1}


def test_every_cell_is_measured_or_has_a_reason():
    for item in registry.items().values():
        for asked in item.cells():
            quantity = asked.quantity
            assert quantity.kind in registry.KINDS
            if quantity.kind == "stated":
                assert len(quantity.what.split()) > 3, asked.name
            for need in registry.needs(quantity):
                assert need.method in registry.methods(), asked.name
                assert need.dataset in registry.sizes(), asked.name
                assert need.template in (*registry.templates(need.dataset), registry.SWEPT), asked.name


def test_cells_that_are_made_of_others_name_cells_that_are_there():
    for cell in paper.cells().values():
        quantity = registry.quantity_of(cell)
        if quantity.kind == "cells_of":
            assert all(registry.cells_of(quantity)), cell.name


def test_methods_name_what_there_is():
    for method in registry.methods().values():
        assert method.scorer.partition("?")[0] in SCORERS
        assert method.baseline is None or method.baseline in BASELINES
        assert method.decided in deciding.WAYS
        if method.weights.backbone:
            assert method.weights.backbone.partition("?")[0] in SPECS
    wanted = {name for name in paper.facts()["methods"] if not name.startswith("blend_")}
    assert wanted - set(registry.methods()) == {"llada_per_label_checkpoint_not_named"}
    for dataset in registry.sizes():
        assert set(registry.templates(dataset).values()) <= set(QUESTIONS)


def test_checkpoints_are_those_that_the_paper_names():
    setup = paper.facts()["setup"]
    for name, repository in setup["backbones"].items():
        backbone = registry.weights()[name].backbone
        assert SPECS[backbone.partition("?")[0]].repository == repository
    for name, baseline in setup["baselines"].items():
        if name in registry.methods() and "checkpoint" in baseline:
            assert registry.methods()[name].weights.checkpoint.endswith(baseline["checkpoint"]), name


def test_blends_mix_what_the_paper_mixes_with_weights_of_the_grid():
    for row in paper.facts()["tables"]["ensemble"]["rows"]:
        blend = registry.blends()[row["method"]]
        assert list(blend.weights) == list(row["weights"].values())
        assert all((weight * blend.steps).is_integer() for weight in blend.weights)


def test_the_sizes_of_estimates_are_the_papers():
    setup = paper.facts()["setup"]
    for name, size in registry.sizes().items():
        facts = setup["datasets"][name]
        assert size.documents == setup["slices"]["test_sizes"][name]
        assert (size.labels, size.asked) == (facts["label_count"], facts["shortlist_k"] or facts["label_count"])


def test_templates_of_the_sweep_are_those_of_its_table():
    for cell in paper.cells().values():
        if cell.table in ("prompt_sweep", "prompt_sweep_body"):
            assert cell.row in registry.templates(cell.dataset), cell.name


@pytest.mark.parametrize(
    ("cell", "needs"),
    [
        ("main/dream_base_per_label/aapd/micro", [("dream_base_per_label", "aapd", "express", (13,))]),
        (
            "multiseed/llada_instruct_best_prompt/reuters/macro_std",
            [("llada_instruct_best_prompt", "reuters", "swept", (13, 17, 23))],
        ),
        ("prompt_sweep/about/ecthr/micro", [("llada_instruct_per_label", "ecthr", "about", (13,))]),
        ("jsr_biased_seed/0/reuters/micro", [("llada_base_jsr_0", "reuters", "express", (13,))]),
        (
            "dream_delta/llada_8b/jigsaw/delta_macro",
            [(f"llada_{kind}_per_label", "jigsaw", "express", (13,)) for kind in ("instruct", "base")],
        ),
        ("hparams_supervised/epochs/t5", []),
    ],
)
def test_which_runs_a_cell_needs(cell, needs):
    assert registry.needs(registry.quantity_of(paper.cell(cell))) == [registry.Need(*need) for need in needs]


def test_an_unknown_item_is_an_error():
    with pytest.raises(SetScoreError, match=r"^unknown table or figure 'mian'\. Did you mean 'main'\?"):
        registry.item("mian")


def test_one_model_in_the_place_of_all_is_asked_once_for_each_dataset():
    from setscore.experiments.reproduction.listing import budget
    from setscore.experiments.reproduction.planning import Choice

    asked = [one for one in registry.items()["main"].cells() if "per_label" in str(one.quantity)]
    alone = budget(asked, Choice(backbone="setscore-mini"), teraflops=1.0)
    papers = budget(asked, Choice(), teraflops=1.0)
    assert alone.runs < papers.runs
    assert alone.seconds < papers.seconds / 100, "the experts of a model that is replaced do no work"
