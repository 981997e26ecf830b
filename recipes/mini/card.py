"""The model card, from what the stages of a run left behind.

    python recipes/mini/card.py --run build/mini --parity tests/data/fp32_log_odds.json --out card.md

`--results` takes the JSON of `setscore evaluate all` and adds its table.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import yaml
from sources.natural import load_tasks

HERE = Path(__file__).parent
SPREAD = 0.5  # log-odds; below, a slot changes a probability of a half by less than an eighth
BIAS = "That is a slot bias: in an all-masked list a place says yes or no whichever label stands there."
NO_BIAS = "The all-masked layout shows no slot collapse as the paper saw it."
TEXT = (HERE / "card.md").read_text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--parity", type=Path, required=True)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    read = {name: json.loads((arguments.run / f"{name}.json").read_text()) for name in ("summary", "sanity")}
    parity = json.loads(arguments.parity.read_text())
    results = json.loads(arguments.results.read_text()) if arguments.results else None
    runs = [log_end(path) for path in sorted(arguments.run.glob("run-*-*/log.jsonl"))]
    arguments.out.write_text(card(read["summary"], read["sanity"], parity, runs, results))


def log_end(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text().splitlines()[-1])  # type: ignore[no-any-return]


def card(
    summary: dict[str, Any],
    sanity: dict[str, Any],
    parity: dict[str, Any],
    runs: list[dict[str, Any]],
    results: dict[str, Any] | None,
) -> str:
    """The text with every number filled in; a name without a number is an error."""
    copied, worded = summary["removed"]["documents"], summary["removed"]["wordings"]
    slots = sanity["slot_log_odds"]
    values = {
        "rows": f"{summary['rows']:,}",
        "documents": f"{summary['documents']:,}",
        "sources": len(summary["by_source"]),
        "phrases": f"{summary['phrases']:,}",
        "copied": sum(copied.values()),
        "worded": len(worded),
        "checked": "" if summary["evaluation_documents_checked"] else " (not checked in this run)",
        "tasks": len(load_tasks(HERE / "tasks")),
        "runs": len(runs),
        "settings": settings(),
        "accuracy": " to ".join(f"{100 * f(run['accuracy'] for run in runs):.0f}" for f in (min, max)),
        "entropy": f"{sanity['unigram_entropy']:.2f}",
        "unigram": f"{sanity['unigram_model']:.2f}",
        "losses": ", ".join(f"{loss:.2f} at t = {t}" for t, loss in sanity["masked_loss"].items()),
        "passages": sanity["passages"],
        "slots": ", ".join(f"{value:+.2f}" for value in slots),
        "spread": f"{max(slots) - min(slots):.2f}",
        "bias": BIAS if max(slots) - min(slots) > SPREAD else NO_BIAS,
        "flips": f"{100 * parity['flips']:.2f}",
        "rms": f"{parity['rms_error']:.3f}",
        "results": table(results) if results else "See docs/results.md.",
    }
    text = TEXT
    for name, value in values.items():
        text = text.replace("<<" + name + ">>", str(value))
    if "<<" in text:
        raise ValueError(f"the card has a place that nothing fills: {text[text.index('<<') :][:40]!r}.")
    return text


def settings() -> str:
    """The runs of the configuration, one line each."""
    config = yaml.safe_load((HERE / "config.yaml").read_text())
    runs = [("encoder", config["language"] | {"settings": ["the language model itself"]})]
    runs += [(group, run) for group, found in config["runs"].items() for run in found]
    return "\n".join(
        f"| {start} | {run['seed']} | {run['steps']} | {', '.join(run['settings'])} |" for start, run in runs
    )


def table(results: dict[str, Any]) -> str:
    """Micro / macro F1 of the rows that matter, by dataset."""
    datasets = results["datasets"]
    lines = ["| | " + " | ".join(datasets) + " |", "|---|" + "---:|" * len(datasets)]
    for name in ("auto", "paper", "label prior", "cosine, auto", "cosine, paper"):
        cells = []
        for found in datasets.values():
            row = next((row for row in found["rows"] if row["name"] == name), None)
            shown = [f"{100 * row['metrics'][m]['mean']:.1f}" for m in ("micro_f1", "macro_f1")] if row else [""]
            cells.append(" / ".join(shown))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
