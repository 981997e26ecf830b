"""`setscore compare-attention` and `setscore models --check`, as a user runs them."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import invoke
from scipy.stats import spearmanr

from setscore import SetScoreClassifier
from setscore.backbones import BACKBONES
from setscore.experiments.attention import compare_attention, rank_correlation

DATA = Path(__file__).parents[1] / "data"
LABELS = DATA / "everyday_labels.yaml"


@pytest.fixture(scope="module")
def rows():
    return [json.loads(line) for line in (DATA / "everyday.jsonl").read_text(encoding="utf-8").splitlines()][:12]


def test_both_modes_with_gold():
    code, out, err = invoke(
        "compare-attention", "--file", DATA / "everyday.jsonl", "--labels", LABELS, "--gold", "--limit", 12
    )
    assert (code, err) == (0, "")
    head, exact, shared, _, told = out.splitlines()
    assert head.split() == [
        "attention",
        "documents/s",
        "micro-F1",
        "macro-F1",
        *["best", "micro-F1", "best", "macro-F1"],
    ]
    assert [line.split()[0] for line in (exact, shared)] == ["exact", "shared"]
    assert told.startswith("setscore-small, 12 documents, 12 labels: ")
    assert "of 144 decisions flip, rank correlation 0.9" in told


def test_without_gold(tmp_path):
    (tmp_path / "texts.txt").write_text("Crude prices fell again.\nIt rained all week.\n")
    code, out, _ = invoke("compare-attention", "--file", "texts.txt", "--labels", "oil,weather", folder=tmp_path)
    assert code == 0
    assert "F1" not in out
    assert "2 documents, 2 labels" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--file", "x.txt"], "documents and labels are needed: --file FILE --labels FILE."),
        (
            ["--file", "blank.jsonl", "--labels", "oil"],
            "blank.jsonl holds no documents. 1 of 1 row cannot be used and was left out: row 1 is empty or blank.",
        ),
        (["--file", "x.txt", "--labels", "oil", "--backbone", "llada-8b-bas"], "Did you mean 'llada-8b-base'?"),
    ],
)
def test_mistakes(tmp_path, arguments, message):
    (tmp_path / "x.txt").write_text("Oil.\n")
    (tmp_path / "blank.jsonl").write_text('{"text": ""}\n')
    code, _, err = invoke("compare-attention", *arguments, folder=tmp_path)
    assert code == 2
    assert message in err


def test_the_numbers_are_those_of_the_classifiers(rows):
    texts = [row["text"] for row in rows]
    classifier = SetScoreClassifier(["oil", "weather", "sports"], threshold=0.3)
    found = compare_attention(classifier, texts)
    exact, shared = (
        SetScoreClassifier(["oil", "weather", "sports"], attention=mode).predict_proba(texts) >= 0.3
        for mode in ("exact", "shared")
    )
    assert found.flips == pytest.approx((exact != shared).mean(), abs=0.06)  # int8 may round a decision the other way
    assert found.shared.f1 is None
    assert found.speedup > 0


def test_rank_correlation():
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert rank_correlation(values, np.exp(values)) == pytest.approx(1)
    assert rank_correlation(values, -values) == pytest.approx(-1)
    assert rank_correlation(values, np.ones((2, 2))) == 1
    tied, other = np.array([[1.0, 1.0, 2.0, 5.0]]), np.array([[3.0, 1.0, 2.0, 2.0]])
    assert rank_correlation(tied, other) == pytest.approx(spearmanr(tied[0], other[0]).statistic)


def test_models_check():
    code, out, _ = invoke("models", "--check", "setscore-mini")
    assert code == 0
    for fact in (
        "'[MASK]' (103)",
        "'yes' (2748) and 'no' (2053), one token each",
        "at the slot",
        "512 tokens",
        "shared",
    ):
        assert fact in out


def test_models_lists_what_can_be_downloaded():
    code, out, _ = invoke("models")
    assert code == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *BACKBONES]
    assert "8.0 B    4096     exact" in lines[3]
    assert max(len(line.rstrip()) for line in lines) <= 80  # one line each on a narrow screen


def test_models_check_of_a_masked_language_model(tmp_path):
    pytest.importorskip("transformers")
    import masked_models

    folder = masked_models.write(tmp_path / "roberta", "roberta")
    code, out, _ = invoke("models", "--check", f"hf:{folder}?device=cpu")
    assert code == 0
    for fact in (
        "RobertaForMaskedLM", "local folder, 1 weight file with SHA-256 ", "float32 on cpu", "GB for the weights",
        "'<mask>' (4)", "'Ġyes'", "at the slot", "128 tokens",
    ):  # fmt: skip
        assert fact in out


def test_models_check_of_a_folder(tmp_path):
    pytest.importorskip("transformers")
    import checkpoints

    folder = checkpoints.make(tmp_path, "dream", shards=2)
    code, out, err = invoke("models", "--check", f"{folder}?device=cpu&dtype=fp32")
    assert (code, err) == (0, "")
    for fact in (
        "'<|mask|>' (5)",
        "'Ġyes'",
        "1 before the slot",
        "accounted for",
        "fp32 on cpu",
        "p(yes) + p(no) =",
        "local folder, 2 weight files with SHA-256 ",
        "GB for the weights",
    ):
        assert fact in out
    code, _, err = invoke("models", "--check", f"{folder}?device=cuda:9")
    assert code == 2
    assert "device 'cuda:9' was asked for, but" in err
