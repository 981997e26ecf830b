"""Is labelling what `suggest` names better than labelling at random? Micro / macro F1 with 50 documents of each kind.

    python benchmarks/studies/suggest.py --data-dir DATA --save scores

For each draw, of five unless --draws tells, 250 documents are there to choose from. Fifty of them are labelled: drawn
at random, or named by `suggest` in two rounds of 25, the first before anything is fitted, the second by the classifier
that learned from the first. Both are fitted in the same way and measured on the same documents, which no choice saw.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import f1_pair, header, measured, options, row, tell, write_json
from benchmarks.labelled import Labelled, chosen, labelled
from benchmarks.studies.few_documents import fit, not_fitting
from setscore.errors import SetScoreError
from setscore.experiments import PAPER_SETS
from setscore.metrics import decision_metrics
from setscore.records import IntArray
from setscore.suggesting import Seen, choose

CANDIDATES, LABELLED, ROUNDS, DRAWS = 250, 50, 2, 5


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--save", type=Path, required=True, help="a folder for the answers of the model")
    parser.add_argument("--backbone", default="setscore-small")
    parser.add_argument("--weights", type=Path, help="float weights of the recipe instead, on a GPU where there is one")
    parser.add_argument("--sets", nargs="+", default=PAPER_SETS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--n", type=int, default=LABELLED, help="documents to label")
    parser.add_argument("--within", action="store_true", help="inside the validation documents, for choosing")
    parser.add_argument("--json", type=Path, help="a file for all numbers")
    arguments = parser.parse_args(given)
    found, backbone = {}, chosen(arguments.backbone, arguments.weights)
    print(header(["set", "random", "suggest", "difference"]))
    for name in arguments.sets:
        try:
            one = labelled(name, arguments.data_dir, arguments.save, backbone, within=arguments.within)
        except SetScoreError as error:
            parser.error(str(error))
        each = [drawn(one, number, arguments.n, within=arguments.within) for number in range(arguments.draws)]
        pairs = np.mean(each, axis=0)
        cells = [f1_pair({"micro_f1": micro, "macro_f1": macro}) for micro, macro in [*pairs, pairs[1] - pairs[0]]]
        found[name] = pairs.tolist()
        print(row([name, *cells]), flush=True)
    better = sum(suggested[0] > random[0] for random, suggested in found.values())
    tell(f"micro-F1 above random choice on {better} of {len(found)} sets")
    write_json(
        arguments.json, {"measured": measured(backbone), "values": "random, suggest: micro, macro", "found": found}
    )


def drawn(one: Labelled, number: int, n: int, *, within: bool) -> list[list[float]]:
    """Micro and macro F1 of random and of suggested documents."""
    order = np.random.default_rng([number, n]).permutation(one.choice if within else one.pool)
    candidates = order[: min(CANDIDATES, len(order) * 3 // 5 if within else len(order))]
    measured = order[len(candidates) :] if within else one.held
    result = []
    for known in (candidates[:n], suggested(one, candidates, n)):
        metrics = decision_metrics(one.gold[measured], fit(one, known, measured)[0])
        result.append([metrics["micro_f1"], metrics["macro_f1"]])
    return result


def suggested(one: Labelled, candidates: IntArray, n: int) -> IntArray:
    """As a user would: label what is suggested, fit, and ask again."""
    known = candidates[:0]
    for number in range(ROUNDS):
        wanted = n * (number + 1) // ROUNDS - len(known)
        rest = np.setdiff1d(candidates, known)
        rows = np.concatenate([rest, known])
        probabilities, vectors = (fit if len(known) else not_fitting)(one, known, rows)[1], one.vectors[rows]
        parts = (slice(len(rest)), slice(len(rest), None))
        unlabelled, done = (Seen(probabilities[part], vectors[part]) for part in parts)
        taken = choose(unlabelled, done, one.gold[known].sum(axis=0), wanted)
        known = np.concatenate([known, rest[[each.row for each in taken]]])
    return known


if __name__ == "__main__":
    main()
