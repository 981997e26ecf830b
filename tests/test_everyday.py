"""The study of unfitted decisions, on made-up texts in the form of tests/data; its intervals against the library's."""

import json

import numpy as np
import pytest
import yaml

from benchmarks import estimates, written
from benchmarks.studies import everyday
from setscore.metrics import bootstrap

DOMAINS = {
    "market": {"oil": "crude oil and its price", "wheat": "grain and harvests", "gold": "gold and other metals"},
    "street": {"rain": "the weather", "football": "a football match"},
}
TEXTS = {
    "market": [
        ("Crude oil fell again.", ["oil"]),
        ("Wheat harvests rose.", ["wheat"]),
        ("Gold and oil.", ["gold", "oil"]),
    ],
    "street": [("Rain all week.", ["rain"]), ("The match was lost in the rain.", ["rain", "football"]), ("Hello.", [])],
}
PAIRS = [
    {"label": "rain", "description": "it rains", "yes": "Rain all day.", "no": "Dry all day.", "how": "other word"},
    {"label": "oil", "description": "crude oil", "yes": "Oil rose.", "no": "Gold rose.", "how": "other word"},
    {"label": "refund", "description": "money back", "yes": "Refund me.", "no": "Do not refund me.", "how": "negation"},
]
WORDINGS = [
    {
        "label": "oil",
        "wordings": ["oil", "crude oil", "the price of oil"],
        "yes": ["Oil."],
        "no": ["It rained.", "Hi."],
    },
    {"label": "rain", "wordings": ["rain", "it rains", "wet weather"], "yes": ["It rained."], "no": ["Oil.", "Hello."]},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two domains, three pairs and two labels in three wordings; no first sample."""
    made = tmp_path_factory.mktemp("written")
    for name, labels in DOMAINS.items():
        rows = [{"id": f"{name}-{i}", "text": text, "labels": gold} for i, (text, gold) in enumerate(TEXTS[name])]
        (made / f"everyday_{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (made / f"labels_{name}.yaml").write_text(yaml.safe_dump(labels))
    (made / "pairs.jsonl").write_text("".join(json.dumps({"id": str(i), **row}) + "\n" for i, row in enumerate(PAIRS)))
    (made / "wordings.yaml").write_text(yaml.safe_dump(WORDINGS))
    return made


@pytest.fixture(scope="module")
def made(folder, tmp_path_factory):
    """The whole study but for the first sample: its numbers."""
    path = tmp_path_factory.mktemp("numbers") / "n.json"
    everyday.main(["--data", str(folder), "--only", "domains", "pairs", "wordings", "--json", str(path)])
    return json.loads(path.read_text())


def test_every_domain_their_mean_and_the_worst_are_measured_both_ways(made):
    assert list(made["domains"]) == ["with descriptions", "with bare names"]
    for rows in made["domains"].values():
        market, street, average, worst = rows.values()
        assert list(rows)[:3] == ["market", "street", "mean"]
        assert list(rows)[3] in ("worst by micro-F1: market", "worst by micro-F1: street")
        assert set(market) == {"micro_f1", "macro_f1", "ece", "ece_raw"}
        for measure in market:
            values = [one[measure]["value"] for one in (market, street)]
            assert average[measure]["value"] == pytest.approx(np.mean(values))
        assert worst["micro_f1"]["value"] == min(market["micro_f1"]["value"], street["micro_f1"]["value"])
        for one in rows.values():
            assert all(value["low"] <= value["high"] for value in one.values())
    assert made["domains"]["with descriptions"] != made["domains"]["with bare names"]


def test_pairs_are_counted_by_how_they_differ(made):
    rows = made["pairs"]["with descriptions"]
    assert {how: one["pairs"] for how, one in rows.items()} == {"all": 3, "negation": 1, "other word": 2}
    for measure in ("ranked", "decided"):
        both = rows["negation"][measure]["value"] + 2 * rows["other word"][measure]["value"]
        assert rows["all"][measure]["value"] == pytest.approx(both / 3)
    assert rows["other word"]["ranked"]["value"] == 1.0  # a text that has the very word of the label


def test_wordings_have_a_precision_each_and_the_ratio_of_the_extremes(made):
    found = made["wordings"]
    assert {label: len(values) for label, values in found["labels"].items()} == {"oil": 3, "rain": 3}
    ratios = [min(values) / max(values) for values in found["labels"].values()]
    assert found["worst_to_best"]["value"] == pytest.approx(np.mean(ratios))
    assert found["average_precision"]["value"] == pytest.approx(np.mean(list(found["labels"].values())))


def test_what_is_printed_names_every_part(folder, capsys):
    everyday.main(["--data", str(folder), "--only", "domains", "pairs", "wordings", "--limit", "2"])
    printed = capsys.readouterr().out
    for heading in ("## 2 domains, 4 documents", "## 2 pairs of texts nearly alike", "## 2 labels in 3 wordings"):
        assert f"\n{heading}\n" in printed
    assert "Means over labels: average precision " in printed


def test_the_first_sample_has_its_yardsticks_and_what_is_missing_is_said(capsys, tmp_path):
    for name in ("everyday.jsonl", "everyday_labels.yaml"):
        (tmp_path / name).write_bytes((written.DATA / name).read_bytes())
    everyday.main(["--data", str(tmp_path), "--limit", "8", "--competition", "0.5"])
    printed = capsys.readouterr()
    rows = [line.split("|")[1].strip() for line in printed.out.splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        "setscore-small, shared attention", "setscore-small, exact attention", "setscore-small, blend=own-cosine",
        "every label", "the most frequent label (oracle)", "setscore-small, competition 0.5", "gold",
    ]  # fmt: skip
    assert "| every label |" in printed.out.replace("  ", " ")
    assert printed.err.splitlines() == [
        f"domains: left out, there is no {tmp_path / 'everyday_<domain>.jsonl'}.",
        f"pairs: left out, there is no {tmp_path / 'pairs.jsonl'}.",
        f"wordings: left out, there is no {tmp_path / 'wordings.yaml'}.",
    ]


def test_an_unknown_backbone_is_one_line(capsys):
    with pytest.raises(SystemExit):
        everyday.main(["--backbone", "setscore-mine", "--only", "sample"])
    assert "error: unknown backbone 'setscore-mine'. Did you mean 'setscore-mini'?" in capsys.readouterr().err


def test_intervals_are_those_of_the_library(monkeypatch):
    monkeypatch.setattr(estimates, "ROUNDS", 1000)
    rng = np.random.default_rng(3)
    probabilities = rng.random((25, 4))
    gold = rng.random((25, 4)) < probabilities
    predicted = probabilities > 0.6
    wanted = bootstrap(gold, predicted, probabilities)
    found = estimates.f1(gold, predicted) | {"ece": estimates.ece(gold, probabilities)}
    for name, one in found.items():
        assert one.value == pytest.approx(wanted[name].value)
        assert one.interval == pytest.approx((wanted[name].low, wanted[name].high)), name


def test_the_interval_of_a_mean_over_domains_is_narrower_than_of_each():
    rng = np.random.default_rng(4)
    each = [estimates.mean(rng.random(40) < 0.7, seed) for seed in (1, 2, 3, 4)]
    together = estimates.average(each)
    widths = [high - low for low, high in (one.interval for one in (*each, together))]
    assert widths[-1] < 0.7 * min(widths[:-1])
    assert together.value == pytest.approx(np.mean([one.value for one in each]))
    assert each[0].show(2, scale=1) == f"{each[0].value:.2f} ({each[0].interval[0]:.2f} to {each[0].interval[1]:.2f})"
