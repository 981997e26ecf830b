"""The page docs/results/studies.md: the table of every study, with the command that prints it.

What a study printed is kept in benchmarks/results/printed. Those tables were copied from the pages of version 0.1;
put there what the section's command prints, then run `python benchmarks/pages/all_pages.py`. The first section is
made from the JSON of its command.
"""

import json
from dataclasses import dataclass

from benchmarks.common import RESULTS, ROOT, table
from benchmarks.pages.readme import origin
from benchmarks.pages.weights import shipped, stated

PAGE = ROOT / "docs" / "results" / "studies.md"
MODEL = "setscore-mini"
WEIGHTS = "952814df790c"  # of the tables in benchmarks/results/printed

HEAD = f"""# Studies

Tables that other pages refer to, each with the command that prints it. Those without a JSON file were copied from the
pages of version 0.1. `{MODEL}` was asked unless a section says otherwise. The sets are development documents of the
paper's datasets; no test document was read. Cells are micro / macro F1 in percent.
"""


@dataclass(frozen=True)
class Section:
    """A study: what was asked, the command, and the files that hold what it printed."""

    title: str
    text: str
    command: str
    printed: tuple[str, ...]

    def markdown(self) -> str:
        shown = "\n".join((RESULTS / "printed" / f"{name}.md").read_text(encoding="utf-8") for name in self.printed)
        return f"## {self.title}\n\n{self.text.strip()}\n\n```text\n{self.command}\n```\n\n{shown}"


SECTIONS = (
    Section(
        "Micro or macro F1",
        """
With 200 documents and `setscore-small`, what thresholds aim at. One cut for all labels is best for micro-F1, a cut for
each label for macro-F1; `balanced`, the default, lies between.
""",
        "python benchmarks/studies/few_documents.py --data-dir DATA --save scores --sizes 200 --methods fit \\\n"
        "    --objective macro_f1",
        ("objectives",),
    ),
    Section(
        "Where a read-out starts",
        """
What all labels share, fitted on the 200 validation documents of each set with `setscore-small`; mean and precision are
one of the two starts of a read-out. Below, micro / macro F1 inside these documents after a few of them, ten draws,
where each set starts from the mean of the *other* sets.
""",
        "python benchmarks/studies/starts.py --data-dir DATA --save scores",
        ("starts",),
    ),
    Section(
        "Six labels at a time",
        """
The same with six labels of each set, drawn anew for each of thirty draws: how few documents help small inventories.
`fit` is nowhere far below the better of the others but on Jigsaw, whose labels go together as no others do (*maximum*
above).
""",
        "python benchmarks/studies/starts.py --data-dir DATA --save scores --labels 6 --draws 30",
        ("starts_of_six",),
    ),
    Section(
        "Suggested documents",
        "Fifty documents out of 250 for `setscore-small`, suggested in two rounds, beside fifty at random; five draws.",
        "python benchmarks/studies/suggest.py --data-dir DATA --save scores",
        ("suggested",),
    ),
    Section(
        "Observed and expected thresholds",
        """
The threshold is a mean, in log-odds, of the best one on the labelled documents and of the one that the calibrated
probabilities expect to be best. The observed one has the weight n / (n + k) for n gold labels; columns are values of k.
Fitted on some of the 200 validation documents and measured on the others, means over six sets, three seeds and three
draws. The package uses 100. Measured with weights before those that are named above.
""",
        "python benchmarks/studies/calibrating.py --scores scores --within --steady 0 50 100 200 inf",
        ("thresholds",),
    ),
    Section(
        "Blending in a cosine",
        """
With `blend="own-cosine"` and calibration only, by the number of labelled documents. Where labels are rare, as in
Jigsaw, a few dozen documents can mislead.
""",
        "python benchmarks/studies/calibrating.py --scores scores --blend",
        ("blend",),
    ),
    Section(
        "Shortlists",
        """
341 EURLEX development documents with 100 labels, seed 13; the slice is 200 other documents. The last row's macro
ceiling is lower because labels that no document of the slice has lose places to those that some have. The paper prints
31.2% for k = 32 on its documents, which is chance.
""",
        "setscore shortlist eurlex --data-dir DATA --json kept.json",
        ("shortlists",),
    ),
    Section(
        "What a shortlist costs",
        """
A hundred thousand labels, k = 32, milliseconds a document on two cores: medians over 50 documents, each the quickest of
three passes. *Plain* is sentence-transformers on the first 256 tokens with faiss; the ratio is of processor time.
""",
        "python benchmarks/studies/shortlist.py",
        ("shortlist_cost",),
    ),
    Section(
        "Sentence embeddings",
        f"""
How near the embedding of `{MODEL}` stays to all-MiniLM-L6-v2, on 200 documents of each set: mean cosine of the two
vectors of one document and of one label, correlation of the cosines between documents and labels, mean average
precision of labels ranked by each, and the time with all-MiniLM-L6-v2 = 1.
""",
        "python benchmarks/studies/embedding.py --data-dir DATA",
        ("embeddings",),
    ),
    Section(
        "int8 and exact attention",
        """
The fp32 model on the prompts of the int8 graph. Decisions that flip at log-odds 0, F1 of these decisions, and F1 with
`auto`, fitted to the fp32 scores and applied to both; exact attention is fitted to its own scores. Shared attention is
the native mode.
""",
        "python -m recipes.precision --weights build/mini/weights.safetensors --data-dir DATA --scores scores --exact",
        ("precision",),
    ),
    Section(
        "Batches",
        """
On two cores that other programs used too, so that seconds are upper bounds. All three engines write the same bytes. Ray
takes some ten seconds to start and runs its workers at low priority.
""",
        "python benchmarks/speed/batch.py",
        ("batches",),
    ),
    Section(
        "Serving",
        "64 clients with one document per request, beside one call with all of their documents; on two shared cores.",
        "python benchmarks/speed/serve.py --seconds 6",
        ("serving",),
    ),
)


def few_documents() -> str:
    """The learning curve as a table, from the JSON of its command."""
    content = json.loads((RESULTS / "few-documents.json").read_text(encoding="utf-8"))
    backbone, rows = content["measured"]["backbone"], []
    remark = f"{asked}\n" if (asked := origin(content["measured"])) else ""
    for key, cells in content["found"].items():
        size, _, method = key.partition(" ")
        if method not in ("fit", "not fitting") or (method == "not fitting" and size != "0"):
            continue
        pairs = [cell[:2] for cell in cells.values()]
        pairs.append([sum(one) / len(pairs) for one in zip(*pairs, strict=True)])
        rows.append([f"{int(size):,}", *(f"{micro:.1f} / {macro:.1f}" for micro, macro in pairs)])
    sets = list(next(iter(content["found"].values())))
    command = "python benchmarks/studies/few_documents.py --data-dir DATA --save scores"
    model = "--weights build/small/weights.safetensors" if remark else f"--backbone {backbone}"
    return (
        "## How many documents\n\n"
        f"`{backbone}`, by the number of documents that `fit` saw; 0 is before `fit`. Means over twenty draws, measured"
        " on other\ndocuments by which nothing was chosen. The last row has as many as a set has, 300 to 1,000.\n"
        f"{remark}\n"
        f"```text\n{command} \\\n    {model} --json benchmarks/results/few-documents.json\n```\n\n"
        f"{table(['documents', *sets, 'mean'], rows)}\n"
    )


def page() -> str:
    assert shipped(MODEL)
    parts = [HEAD, f"{stated(MODEL, WEIGHTS)}\n", few_documents(), *(section.markdown() for section in SECTIONS)]
    return "\n".join(parts)
