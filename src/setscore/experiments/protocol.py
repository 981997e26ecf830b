"""Protocols: what is fixed before anything is measured, so that one word on a result says how it was made.

"paper" is the paper's, wherever this package's own way is another one: its calibrator with its grids, documents cut at
600 tokens, no read-out, nothing mixed in, one seed for a headline, the retriever's 32 labels on EURLEX and all labels
elsewhere, posteriors mixed with weights in quarters, prompts and weights chosen by validation micro-F1. What it leaves
open is chosen here once and written down in docs/how-to/reproducing.md.

"setscore" is what a user gets from the defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from setscore.calibration.paper import PaperCalibration
from setscore.errors import SetScoreError, unknown_name
from setscore.metrics import Counts
from setscore.records import BoolArray, FloatArray
from setscore.shortlist import Shortlist

DOCUMENT_TOKENS = 600
VALIDATION = 200


@dataclass(frozen=True)
class Protocol:
    """fixed       options of a run and the values that they have; a config that says otherwise is an error
    shortlists  of datasets whose labels are too many for every prompted method; others have none
    seeds       that draw validation documents, unless a run names others
    """

    name: str
    about: str
    fixed: Mapping[str, Any]
    seeds: tuple[int, ...]
    shortlists: Mapping[str, str] = field(default_factory=dict)

    def shortlist(self, dataset: str, *, prompted: bool = True) -> str | None:
        """The shortlist of a dataset for a method that asks labels; those that learn all labels see all of them."""
        return self.shortlists.get(dataset) if prompted else None


PAPER = Protocol(
    "paper",
    "the paper's calibrator, slices, truncation and choices by validation micro-F1",
    {
        "calibration": "paper",
        "method.long_documents": "truncate",
        "method.head": "none",
        "method.blend": None,
        "method.competition": None,
    },
    seeds=(13,),
    shortlists={"eurlex": "cosine:32"},
)
SETSCORE = Protocol("setscore", "this package's defaults, as a user gets them", {}, seeds=(13, 17, 23))
PROTOCOLS = {one.name: one for one in (PAPER, SETSCORE)}


def protocol(name: str) -> Protocol:
    """The protocol of this name."""
    if name not in PROTOCOLS:
        raise SetScoreError(unknown_name("protocol", name, PROTOCOLS))
    return PROTOCOLS[name]


def made_under(dataset: str, decided_by: str, config: Mapping[str, Any], *, prompted: bool = True) -> str:
    """The word that stands on a row of results: paper where all that the paper fixes is as it says, else setscore.

    `decided_by` is the calibration as it is spelt, or "own" for a method that decides itself, `config` what the scores
    were asked with. Seeds and slices are free in both protocols, and stand beside the row.
    """
    cut = PAPER.shortlist(dataset, prompted=prompted)
    papers = (
        decided_by in (PAPER.fixed["calibration"], "own")
        and config.get("long_documents", "truncate") == PAPER.fixed["method.long_documents"]
        and "blend" not in config
        and "learned" not in config
        and config.get("shortlist") == (None if cut is None else Shortlist.of(cut).settings())
    )
    return PAPER.name if papers else SETSCORE.name


def validation_micro_f1(log_odds: FloatArray, gold: BoolArray) -> float:
    """What the paper chooses by: micro-F1 of its calibrator on the very slice that it is fitted on."""
    decisions = PaperCalibration().fit(log_odds, gold).predict(log_odds)
    return float(Counts.of(gold, decisions).micro().f1())


def best(values: Sequence[float]) -> int:
    """The place of the highest; of equals the first, so a default is left only for something better."""
    return max(range(len(values)), key=lambda place: (values[place], -place))
