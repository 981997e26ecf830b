"""The numbers of README.md, from the results in benchmarks/results: blocks between two marks.

    python benchmarks/studies/everyday.py --json benchmarks/results/everyday-small.json
    python benchmarks/studies/everyday.py --backbone setscore-mini --json benchmarks/results/everyday-mini.json
    python benchmarks/studies/few_documents.py --data-dir DATA --save scores \\
        --json benchmarks/results/few-documents.json
    python benchmarks/speed/cpu.py --json benchmarks/results/cpu.json
    python benchmarks/pages/all_pages.py

The last command writes README.md, the pages and the pictures; with `--check` it writes nothing and fails if something
is stale: a page that was not made from these results, or results of other weights than the package ships.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.common import RESULTS, ROOT, table, zero_shot
from benchmarks.pages.weights import made_from
from benchmarks.written import STRANGERS
from setscore.backbones import backbone_spec, load_backbone
from setscore.backbones.specs import DEFAULT_MODEL

README = ROOT / "README.md"
GPU_PAGE = ROOT / "docs" / "results" / "gpu.md"
BLOCK = re.compile(r"<!-- numbers: (\w+) -->\n(.*?)<!-- end of numbers -->\n", re.DOTALL)
NEEDED = ("everyday-small", "everyday-mini", "few-documents", "cpu")
Found = Mapping[str, Mapping[str, Any]]  # results by the name of their file


def results() -> dict[str, dict[str, Any]]:
    return {name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")) for name in NEEDED}


def stale(found: Found) -> list[str]:
    """Results of other weights than those of the package, as sentences."""
    return [
        f"benchmarks/results/{name}.json was not measured with the weights and numbers of"
        f" {one['measured']['backbone']} that are shipped. benchmarks/pages/readme.py says how to measure again."
        for name, one in found.items()
        if not is_current(one["measured"])
    ]


def is_current(measured: Mapping[str, Any]) -> bool:
    """Whether the package still has what was measured.

    A file that a command wrote has the model's identity, or the digest of the float weights that the model was made
    from, where these were asked in its place; and the numbers that stood in before `fit`, but for speed alone.
    """
    numbers = zero_shot(measured["backbone"])
    if measured.get("zero_shot", numbers) != numbers:
        return False
    if "made_from_sha256" in measured:
        return measured["made_from_sha256"] == made_from(measured["backbone"])
    return measured["identity"] == load_backbone(measured["backbone"]).identity


def origin(measured: Mapping[str, str]) -> str:
    """A remark on numbers for which float weights were asked; else nothing."""
    return (
        "Measured on a GPU, with the weights before they were rounded to int8."
        if "made_from_sha256" in measured
        else ""
    )


def written(text: str, found: Found) -> str:
    """The README with every block made anew."""
    return BLOCK.sub(
        lambda block: f"<!-- numbers: {block[1]} -->\n{BLOCKS[block[1]](found)}<!-- end of numbers -->\n", text
    )


def percent(value: float) -> str:
    return f"{100 * value:.0f}"


def range_row(title: str, regime: str, values: Mapping[str, float]) -> list[str]:
    """A line of the table: the mean over domains or datasets, and both ends by name. Values are fractions."""
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    mean = sum(values.values()) / len(values)
    return [title, regime, percent(mean), *(f"{percent(values[name])} ({name})" for name in (low, high))]


def everyday_rows(one: Mapping[str, Any]) -> list[list[str]]:
    name = one["measured"]["backbone"]
    made = []
    for way, rows in one["domains"].items():
        domains = {
            domain: row["micro_f1"]["value"] for domain, row in rows.items() if not domain.startswith(("mean", "worst"))
        }
        kinds = {"by strangers": domains.keys() & set(STRANGERS)}
        if name == DEFAULT_MODEL:
            kinds["looked at while building"] = domains.keys() - set(STRANGERS)
        for kind, members in kinds.items():
            some = {domain: value for domain, value in domains.items() if domain in members}
            made.append(range_row(f"{len(some)} everyday domains {kind}, labels {way}, `{name}`", "zero-shot", some))
    return made


def public_rows(one: Mapping[str, Any]) -> list[list[str]]:
    name, found = one["measured"]["backbone"], one["found"]
    made = []
    for size in (0, 25, 200):
        cells = found[f"{size} fit" if size else "0 not fitting"]
        learned = f"learned, {size} documents" if size else "zero-shot"
        values = {dataset: pair[0] / 100 for dataset, pair in cells.items()}
        made.append(range_row(f"{len(values)} public datasets, `{name}`", learned, values))
    return made


def results_block(found: Found) -> str:
    rows = [row for name in ("everyday-small", "everyday-mini") for row in everyday_rows(found[name])]
    rows += public_rows(found["few-documents"])
    shown = table(["texts", "regime", "mean", "lowest", "highest"], rows, left=2)
    pairs = found["everyday-small"]["pairs"]["with descriptions"]["all"]
    asked = origin(found["few-documents"]["measured"])
    remark = f"Rows of public datasets: {asked[0].lower()}{asked[1:]}\n\n" if asked else ""
    return (
        f"{shown}\n\n{remark}Near pairs are two texts that are nearly the same; a label applies to only one of them.\n"
        f"The default gives that one the higher probability in {percent(pairs['ranked']['value'])}% of"
        f" {pairs['pairs']} pairs, and gets both right in {percent(pairs['decided']['value'])}%.\n"
    )


def speed_block(found: Found) -> str:
    one = found["cpu"]
    tokens = sorted({cell["tokens"] for cell in one["rates"]})
    labels = sorted({cell["labels"] for cell in one["rates"]})
    ratio = {(cell["tokens"], cell["labels"]): cell["ratio"] for cell in one["rates"]}
    rows = [[f"documents of {size} tokens", *(f"{ratio[size, count]:.0f}" for count in labels)] for size in tokens]
    head = ["times as fast as transformers' pipeline", *(f"{count} labels" for count in labels)]
    small, other = (one["single"][name]["peak_bytes"] / 1e6 for name in ("shared", "pipeline/1"))
    gain = re.search(r"LLaDA-8B: shared attention scores (.*? times) as many", GPU_PAGE.read_text(encoding="utf-8"))
    assert gain, f"{GPU_PAGE} no longer says how much faster shared attention is"
    memory = f"Both ran on {one['cores']} cores, with {small:.0f} MB of memory against {other:.0f}."
    return (
        f"{table(head, rows)}\n\n{memory}"
        f" On a GPU, LLaDA-8B scores {gain[1]} as many documents with shared\nattention as with padded prompts"
        f" ([speed on a GPU](docs/results/gpu.md)).\n"
    )


def size_block(found: Found) -> str:
    spec = backbone_spec("setscore-small")
    pairs = found["everyday-small"]["pairs"]["with descriptions"]
    (negation, of_negation), (sarcasm, of_sarcasm) = (both_right(pairs[how]) for how in ("negation", "sarcasm"))
    return (
        f"- **Small**: {spec.parameters / 1e6:.0f} million parameters and {spec.context} tokens at a time, document and"
        " question together (`setscore models`).\n  English only. A label that only one passage of a longer document is"
        " about is often missed\n  ([reading passages](docs/how-to/documents.md#read-long-documents) finds some of"
        " them).\n"
        f"- **Words before meaning**: of {of_negation} near pairs that differ by a negation, both texts are decided"
        f" right in {negation};\n  of {of_sarcasm} that differ by sarcasm, in {sarcasm}"
        " (`python benchmarks/studies/everyday.py`).\n"
    )


def both_right(pairs: Mapping[str, Any]) -> tuple[int, int]:
    """How many near pairs of a kind are decided right, and how many there are."""
    return round(pairs["decided"]["value"] * pairs["pairs"]), pairs["pairs"]


BLOCKS: dict[str, Callable[[Found], str]] = {"results": results_block, "speed": speed_block, "size": size_block}
