"""Direct emission of the label set (the paper's negative result): masked tokens, filled greedily, read as a list.

One prompt lists the labels and ends in masked tokens. Each is filled with its most likely token in one forward, and the
text is parsed at its commas. A decision is all there is: log-odds are 1 for a label that was named and -1 else.

It needs the whole vocabulary at a slot, which log-odds are not enough for: a backbone has to offer `most_likely`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from setscore.backbones import Emitter
from setscore.errors import BackboneError, SetScoreError
from setscore.prompts import SetTemplate
from setscore.records import FloatArray, Query
from setscore.scorers.base import Asker, SetScorer, Window

# The paper gives no wording for this prompt; ours keeps the other one's words.
EMISSION = SetTemplate(
    "Name the candidate labels that apply, separated by commas.\n\n"
    "Document:\n{document}\n\nLabels:\n{labels}\n\nAnswer:"
)
FAILURES = ("repeated", "fragments", "nothing")


@dataclass(frozen=True)
class SubsetScorer(SetScorer):
    """tokens: how many are emitted. Cost: 1 forward.

    Details, how often the parser failed in a document: `repeated` names of a label, `fragments` that are no label, and
    `nothing` recognised at all.
    """

    tokens: int = 64

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise SetScoreError(f"tokens is a number of masked tokens, 1 or more, got {self.tokens}.")

    def cost(self, labels: int, *, shared: bool) -> int:  # noqa: ARG002
        return min(labels, 1)

    def longest_query(self, prompt: SetTemplate, texts: Sequence[str]) -> Query:  # noqa: ARG002
        return self._query("", texts)

    def _query(self, document: str, texts: Sequence[str]) -> Query:
        query = EMISSION.query(document, texts, [None])
        return Query(query.prefix, document, (query.question[0], *(query.question[1],) * self.tokens))

    def score_windows(
        self, asker: Asker, windows: Sequence[Window]
    ) -> tuple[list[FloatArray], Mapping[str, list[float]]]:
        backbone = asker.backbone
        if not isinstance(backbone, Emitter):
            raise BackboneError(
                f"{backbone.spec.name} reads only the two answers, so it cannot emit a set of labels. Use a backbone"
                " that reads its whole vocabulary (hf:<id>, or a LLaDA or Dream checkpoint), or another scorer."
            )
        asker.forwards += len(windows)
        texts = backbone.most_likely([self._query(window.text, window.texts) for window in windows])
        results: list[FloatArray] = []
        failures: dict[str, list[float]] = {name: [] for name in FAILURES}
        for window, text in zip(windows, texts, strict=True):
            named, found = parse(text, window.texts)
            results.append(np.where(named, 1.0, -1.0))
            for name in FAILURES:
                failures[name].append(float(found[name]))
        return results, failures


def parse(text: str, labels: Sequence[str]) -> tuple[np.ndarray, dict[str, int]]:
    """Which labels a list names [m], and how often it fails; case and white space do not count."""
    places = {_plain(label): place for place, label in enumerate(labels)}
    named = np.zeros(len(labels), dtype=np.bool_)
    repeated = fragments = 0
    for part in (_plain(piece) for piece in text.replace("\n", ",").split(",")):
        if not part:
            continue
        if part not in places:
            fragments += 1
        elif named[places[part]]:
            repeated += 1
        else:
            named[places[part]] = True
    return named, {"repeated": repeated, "fragments": fragments, "nothing": int(not named.any())}


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(" .;:-").casefold()
