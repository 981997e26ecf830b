"""The model card, from what the stages of a run left behind.

    python -m recipes.card --run build/small --model small --parity tests/data/fp32_log_odds.json --out card.md

`--results` takes the JSON of `setscore evaluate all`, `--everyday` that of benchmarks/studies/everyday.py: the figures.
"""

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

import yaml

from recipes import HERE
from recipes.sources.judged import NAME
from recipes.sources.natural import load_tasks
from recipes.sources.written import SOURCE as WRITTEN
from recipes.tutored import Tutored
from setscore.backbones.causal.weights import WEIGHTS, read
from setscore.backbones.specs import KNOWN
from setscore.experiments.diagnosis_words import STRONG_SLOT

TEXT = (HERE / "card.md").read_text()
RESULTS = """\
Micro / macro F1 in percent on development documents of these sets, means over three draws of 200 labelled documents
that the calibrations `auto` (ours) and `paper` (that of the paper which SetScore implements) were fitted on; `setscore
evaluate all --data-dir DATA`. The rows `cosine` are those of all-MiniLM-L6-v2; where they are higher, ask that encoder
too (`blend="cosine"`):"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--model", choices=sorted(configuration()["models"]), required=True)
    parser.add_argument("--parity", type=Path, required=True)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--everyday", type=Path)
    parser.add_argument("--note", default="", help="what the stages cannot know about how the runs were made")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    stages = {name: json.loads((arguments.run / f"{name}.json").read_text()) for name in ("summary", "sanity")}
    parity = json.loads(arguments.parity.read_text())
    results, everyday = (
        json.loads(path.read_text()) if path else None for path in (arguments.results, arguments.everyday)
    )
    runs = [log_end(path) for path in sorted(arguments.run.glob("run-*/log.jsonl"))]
    measured = figures(results, everyday)
    said = {"measured": measured, "note": arguments.note, "tutor": tutored(arguments.run)}
    arguments.out.write_text(card(arguments.model, stages["summary"], stages["sanity"], parity, runs, **said))


def log_end(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text().splitlines()[-1])  # type: ignore[no-any-return]


def card(
    model: str,
    summary: dict[str, Any],
    sanity: dict[str, Any],
    parity: dict[str, Any],
    runs: list[dict[str, Any]],
    *,
    measured: str = "",
    note: str = "",
    tutor: str = "",
) -> str:
    """The text with every number filled in; a name without a number is an error."""
    copied, worded = summary["removed"]["documents"], summary["removed"]["wordings"]
    described, by_source = configuration()["models"][model], summary["by_source"]
    values = {
        "model": model,
        "layers": described["shape"]["layers"],
        "parameters": described["shape"]["parameters"],
        "started": described["started"],
        "role": described["role"],
        "temperature": KNOWN[f"setscore-{model}"].temperature,
        "competition": KNOWN[f"setscore-{model}"].competition,
        "handicap": KNOWN[f"setscore-{model}"].handicap,
        "written": f"{read_by_hand(by_source) - judged(by_source):,}",
        "judged": f"{judged(by_source):,}",
        "rows": f"{summary['rows']:,}",
        "documents": f"{summary['documents']:,}",
        "sources": len(by_source),
        "phrases": f"{summary['phrases']:,}",
        "copied": sum(copied.values()),
        "worded": len(worded),
        "more": more(summary),
        "toy": toy(runs, model),
        "note": f"\n{textwrap.fill(note, 120)}\n" if note else "",
        "tutor": tutor,
        "checked": "" if summary["evaluation_documents_checked"] else " (not checked in this run)",
        "tasks": len(load_tasks(HERE / "tasks")),
        "runs": len(runs),
        "settings": settings(model),
        "entropy": f"{sanity['unigram_entropy']:.2f}",
        "unigram": f"{sanity['unigram_model']:.2f}",
        "losses": ", ".join(f"{loss:.2f} at t = {t}" for t, loss in sanity["masked_loss"].items()),
        "passages": sanity["passages"],
        "slots": slot_table(sanity["slot_log_odds"]),
        "flips": f"{100 * parity['flips']:.2f}",
        "rms": f"{parity['rms_error']:.3f}",
        "figures": measured,
    }
    text = TEXT
    for name, value in values.items():
        text = text.replace("<<" + name + ">>", str(value))
    if "<<" in text:
        raise ValueError(f"the card has a place that nothing fills: {text[text.index('<<') :][:40]!r}.")
    return text


def figures(results: dict[str, Any] | None, everyday: dict[str, Any] | None) -> str:
    """What was measured of this model; nothing is said of what was not."""
    parts = []
    if everyday:
        parts.append(everyday_words(everyday))
    if results:
        parts.append(f"{RESULTS}\n\n{table(results)}")
    return "\n\n".join(parts) or "These weights have not been measured yet."


def everyday_words(found: dict[str, Any]) -> str:
    """The mean of the domains and the worst one, as everyday.py writes them beside each domain."""
    shown = []
    for kind, domains in found["domains"].items():
        worst = next(name for name in domains if name.startswith("worst"))
        mean, low = (100 * domains[name]["micro_f1"]["value"] for name in ("mean", worst))
        shown.append(f"{mean:.1f} as a mean of the domains (worst {low:.1f}, {worst.split()[-1]}) {kind}")
    pairs = found["pairs"]["with descriptions"]["all"]
    return textwrap.fill(
        "Before any fit, on everyday documents of several domains that nothing was chosen by, micro-F1 is"
        f" {' and '.join(shown)}; of {pairs['pairs']} pairs of texts nearly alike {pairs['ranked']['value']:.0%} are"
        f" ranked right and {pairs['decided']['value']:.0%} decided right on both sides (`python"
        " benchmarks/studies/everyday.py`, with intervals).",
        120,
    )


def read_by_hand(by_source: dict[str, int]) -> int:
    return sum(n for source, n in by_source.items() if source.startswith(WRITTEN))


def judged(by_source: dict[str, int]) -> int:
    return sum(n for source, n in by_source.items() if source.startswith(f"{WRITTEN}{NAME}-"))


def tutored(run: Path) -> str:
    """What the tutor was and how much it said; nothing where there was none."""
    if not (answers := run / "tutored.npz").exists():
        return ""
    said, (_, about) = Tutored.load(answers), read(run / "tutor" / WEIGHTS)
    text = (
        f"Before the rounds a tutor ({about['name']}, of which a part of the layers) learned the written rows and"
        f" judged texts, and said about {len(said.document):,} texts whether labels apply, {len(said.odds):,} answers"
        " in all. The rounds learned from these too (`recipes/tutor`, settings `tutored` of `recipes/config.yaml`)."
    )
    return f"\n{textwrap.fill(text, 120)}\n"


def slot_table(layouts: dict[str, list[float]]) -> str:
    """Mean log-odds by slot, a line each layout, and whether that is a slot bias."""
    lines = ["| layout | mean log-odds of slots 1 to 10 | spread | slot bias |", "|---|---|---:|---|"]
    for layout, slots in layouts.items():
        spread = max(slots) - min(slots)
        shown = ", ".join(f"{value:+.2f}" for value in slots)
        lines.append(f"| {layout} | {shown} | {spread:.2f} | {'yes' if spread >= STRONG_SLOT else 'no'} |")
    return "\n".join(lines)


def more(summary: dict[str, Any]) -> str:
    """Lines for the data that a run may have or not."""
    lines = []
    if count := summary["by_source"].get("packages"):
        lines.append(
            f"- {count:,} descriptions of the packages of a Debian release, each under its package's licence;\n"
        )
    if summary["topics"]:
        lines.append(f"- {summary['topics']:,} topics and pairs of topics written for this recipe, as more phrases;\n")
    return "".join(lines)


def toy(runs: list[dict[str, Any]], model: str) -> str:
    """A warning, where runs were shorter than they should be."""
    least = min(each["steps"] for each in configuration()["models"][model]["rounds"].values() if "steps" in each)
    short = min(run["step"] for run in runs) < least
    return f"\n**A toy: {len(runs)} runs that were cut short, not the ones below.**\n" if short else ""


def configuration() -> dict[str, Any]:
    return yaml.safe_load((HERE / "config.yaml").read_text())  # type: ignore[no-any-return]


def settings(model: str) -> str:
    """The rounds of the model, a line each."""
    config, lines = configuration(), list[str]()
    for name, each in config["models"][model]["rounds"].items():
        if "mean" in each:
            shares = " + ".join(f"{share:g} {part}" for part, share in each["mean"].items())
            lines.append(f"| {name} | mean of {shares} | | | | |")
            continue
        seeds = ", ".join(map(str, each.get("seeds", config["seeds"])))
        changed = ", ".join([*each["settings"], *each.get("also", [])])
        lines.append(f"| {name} | {each['from']} | {each.get('teacher', '')} | {seeds} | {each['steps']} | {changed} |")
    return "\n".join(lines)


def table(results: dict[str, Any]) -> str:
    """Micro / macro F1 of the rows that matter, by dataset."""
    datasets = results["datasets"]
    lines = ["| | " + " | ".join(datasets) + " |", "|---|" + "---:|" * len(datasets)]
    for name in ("auto", "auto + own-cosine", "paper", "label prior", "cosine, auto", "cosine, paper"):
        cells = []
        for found in datasets.values():
            row = next((row for row in found["rows"] if row["name"] == name), None)
            shown = [f"{100 * row['metrics'][m]['mean']:.1f}" for m in ("micro_f1", "macro_f1")] if row else [""]
            cells.append(" / ".join(shown))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
