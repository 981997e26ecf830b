"""How good weights are on small labelled sets, in torch: for choosing between runs, on validation slices only.

    python recipes/mini/validate.py --data-dir DATA --out validation.json

writes the sets: 200 validation documents of each of the paper's sets that lies in DATA, drawn with seed 13, the same
that `setscore evaluate` draws. A set is {"labels": [texts], "documents": [texts], "gold": [[label numbers]]}. Measured
per set: the mean average precision over labels, micro-F1 with the best single threshold on these documents (optimistic,
the same for every run), and at 0.5.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from kinds import Vocabulary
from model import Mini
from sklearn.metrics import average_precision_score
from store import tokenize
from tokenizers import Tokenizer

from setscore.errors import DataFileError
from setscore.experiments import PAPER_SETS
from setscore.experiments.slices import SEED, prepare

QUESTION = "Question: Does this document express {label}? Answer:"
DOCUMENTS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.write_text(json.dumps(labelled_sets(arguments.data_dir)) + "\n")


def labelled_sets(folder: Path) -> dict[str, dict[str, Any]]:
    """Labels as they are asked, documents and gold label numbers by the set's name; one that is not there is told."""
    found = {}
    for name in PAPER_SETS:
        try:
            pool = prepare(name, "development", [SEED], data_dir=folder).parts["pool"]
        except DataFileError as error:
            print(f"no validation on {name}: {error}")
            continue
        drawn, _ = pool.draw(min(DOCUMENTS, len(pool) // 2), SEED)
        gold = [np.flatnonzero(row).tolist() for row in drawn.gold]
        found[name] = {"labels": list(drawn.labels.texts), "documents": list(drawn.texts), "gold": gold}
    return found


@torch.no_grad()
def score(
    model: Mini, tokenizer: Tokenizer, documents: Sequence[str], labels: Sequence[str], longest: int = 380
) -> np.ndarray:
    """Log-odds [documents, labels], shared attention, the first `longest` tokens of a document."""
    words, device = Vocabulary.of(tokenizer), model.b.device
    questions = [
        [*x, words.mask, words.end] for x in tokenize(tokenizer, [QUESTION.replace("{label}", n) for n in labels])
    ]
    scores = np.zeros((len(documents), len(labels)))
    tokens = [[words.begin, *words.document, *x[:longest], words.end] for x in tokenize(tokenizer, documents)]
    order = sorted(range(len(documents)), key=lambda n: len(tokens[n]))
    for start in range(0, len(order), 16):
        chosen = order[start : start + 16]
        width = max(len(tokens[n]) for n in chosen) + sum(map(len, questions))
        ids, positions, segments = (np.zeros((len(chosen), width), dtype=np.int64) for _ in range(3))
        slots = np.zeros((len(chosen), len(labels)), dtype=np.int64)
        for row, n in enumerate(chosen):
            column = begin = len(tokens[n])
            ids[row, :begin], positions[row, :begin], segments[row, :begin] = tokens[n], range(begin), 1
            for j, question in enumerate(questions):
                cells = slice(column, column + len(question))
                ids[row, cells], segments[row, cells] = question, 2 + j
                positions[row, cells] = np.minimum(np.arange(begin, begin + len(question)), model.shape.positions - 1)
                column += len(question)
                slots[row, j] = column - 2
        at = [torch.from_numpy(x).to(device) for x in (ids, positions, segments, slots)]
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            hidden = model(at[0], at[1], (at[2] > 0).long(), at[2])
            found = hidden.gather(1, at[3][..., None].expand(-1, -1, model.shape.width))
            logits = model.logits(found)
        scores[chosen] = (logits[..., words.yes] - logits[..., words.no]).float().cpu().numpy()
    return scores


def measure(scores: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    order = np.argsort(-scores.ravel(), kind="stable")
    right = gold.ravel()[order].cumsum()
    best = (2 * right / (np.arange(1, right.size + 1) + gold.sum())).max()
    decided = scores > 0
    half = 2 * (decided & gold).sum() / max(1, decided.sum() + gold.sum())
    seen = [j for j in range(gold.shape[1]) if gold[:, j].any()]
    mean = np.mean([average_precision_score(gold[:, j], scores[:, j]) for j in seen])
    return {"map": 100 * float(mean), "best_micro": 100 * float(best), "micro_at_half": 100 * float(half)}


def validate(model: Mini, tokenizer: Tokenizer, sets: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    model.eval()
    found = {}
    for name, each in sets.items():
        gold = np.zeros((len(each["documents"]), len(each["labels"])), dtype=bool)
        for row, numbers in enumerate(each["gold"]):
            gold[row, numbers] = True
        found[name] = measure(score(model, tokenizer, each["documents"], each["labels"]), gold)
    model.train()
    return found


def report(found: Mapping[str, Mapping[str, float]]) -> str:
    lines = [
        f"{name:12s} " + "  ".join(f"{key} {value:5.1f}" for key, value in each.items()) for name, each in found.items()
    ]
    means = {key: np.mean([each[key] for each in found.values()]) for key in next(iter(found.values()))}
    return "\n".join([*lines, f"{'mean':12s} " + "  ".join(f"{key} {value:5.1f}" for key, value in means.items())])


if __name__ == "__main__":
    main()
