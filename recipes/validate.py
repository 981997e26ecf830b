"""How good weights are on small labelled sets, in torch: for choosing between runs, on validation slices only.

    python -m recipes.validate --data-dir DATA --out validation.json
    python -m recipes.validate --validation validation.json --weights w.safetensors --tokenizer tokenizer.json

The first writes the sets: 200 validation documents of each of the paper's sets that lies in DATA, drawn with seed 13,
the same that `setscore evaluate` draws. A set is {"labels": [texts], "documents": [texts], "gold": [[label numbers]]}.
Beside them, as "written", the written rows that are kept apart, and as "judged" the judged texts. The second measures
weights as train.py does at the end of a run: per set the mean average precision over labels, micro-F1 with the best
single threshold on these documents (optimistic, the same for every run), and at 0.5; and the mean average precision
with all labels in one prompt. Of the written rows and judged texts: the share of right decisions at log-odds 0 over all
labels in all wordings, their micro-F1, that of labels whose wordings are all decided alike, and of the labels that
apply to one of two twins the share ranked right (a higher log-odds where the label applies) and decided right on both
sides.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from sklearn.metrics import average_precision_score
from tokenizers import Tokenizer

from recipes import HERE
from recipes.model import Mini, build
from recipes.sources.written import Record, draw_number, for_validation, worded
from recipes.store import tokenize
from recipes.vocabulary import Vocabulary

QUESTION = "Question: Does this document express {label}? Answer:"
LEAST_ROOM = 40  # tokens of a document, below which a list of labels is not asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--written", type=Path, default=HERE / "written", help="default: recipes/written")
    parser.add_argument("--judged", type=Path, help="judged texts that are kept apart, of prepare.py --apart")
    parser.add_argument("--documents", type=int, default=200, help="of each set")
    parser.add_argument("--rows", type=int, help="of the written rows that are kept apart; default: all")
    parser.add_argument("--validation", type=Path)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--tokenizer", type=Path)
    arguments = parser.parse_args()
    wanted = ("data_dir", "out") if arguments.weights is None else ("validation", "tokenizer")
    if missing := [f"--{name.replace('_', '-')}" for name in wanted if getattr(arguments, name) is None]:
        parser.error(f"needed: {' and '.join(missing)}.")
    if arguments.weights is None:
        sets = labelled_sets(arguments.data_dir, arguments.documents)
        sets["written"] = {"rows": some(for_validation(arguments.written), arguments.rows)}
        if arguments.judged and (rows := json.loads(arguments.judged.read_text())):
            sets["judged"] = {"rows": some(rows, arguments.rows)}
        arguments.out.write_text(json.dumps(sets) + "\n")
    else:
        model = build(load_file(arguments.weights)).to("cuda" if torch.cuda.is_available() else "cpu")
        sets = json.loads(arguments.validation.read_text())
        print(report(validate(model, Tokenizer.from_file(str(arguments.tokenizer)), sets)))


def some(rows: Sequence[Record], most: int | None) -> list[Record]:
    """So many rows of all writers and judges; twins, and texts of one label set, stay together."""
    return sorted(rows, key=draw_number)[:most]


def labelled_sets(folder: Path, documents: int) -> dict[str, dict[str, Any]]:
    """Labels as they are asked, documents and gold label numbers by the set's name; one that is not there is told."""
    from setscore.errors import DataFileError  # here: a machine that only trains need not have the package
    from setscore.experiments import PAPER_SETS
    from setscore.experiments.evaluation import SEED, prepare

    found = {}
    for name in PAPER_SETS:
        try:
            pool = prepare(name, "development", [SEED], data_dir=folder).parts["pool"]
        except DataFileError as error:
            print(f"no validation on {name}: {error}")
            continue
        drawn, _ = pool.draw(min(documents, len(pool) // 2), SEED)
        gold = [np.flatnonzero(row).tolist() for row in drawn.gold]
        found[name] = {"labels": list(drawn.labels.texts), "documents": list(drawn.texts), "gold": gold}
    return found


def score(
    model: Mini, tokenizer: Tokenizer, documents: Sequence[str], labels: Sequence[str], longest: int = 380
) -> np.ndarray:
    """Log-odds [documents, labels], a question per label, the first `longest` tokens of a document."""
    words = Vocabulary.of(tokenizer)
    texts = tokenize(tokenizer, [QUESTION.replace("{label}", label) for label in labels])
    asked = [([*text, words.mask, words.end], [len(text)]) for text in texts]
    read = [beginning(words, text, words.document, longest) for text in tokenize(tokenizer, documents)]
    return ask(model, words, read, asked)


def score_lists(
    model: Mini, tokenizer: Tokenizer, documents: Sequence[str], labels: Sequence[str], longest: int = 300
) -> np.ndarray | None:
    """The same with all labels in one prompt, each masked answer behind its label; None where they do not fit."""
    words = Vocabulary.of(tokenizer)
    listed, places = words.listed(tokenize(tokenizer, labels), [words.mask] * len(labels), inline=True)
    room = model.shape.positions - len(listed) - len(words.inline_prefix) - 3
    if room < LEAST_ROOM:
        return None
    kept = min(room, longest)
    read = [beginning(words, text, words.inline_prefix, kept) for text in tokenize(tokenizer, documents)]
    return ask(model, words, read, [([*listed, words.end], places)])


def beginning(words: Vocabulary, text: list[int], prefix: list[int], longest: int) -> list[int]:
    """What a prompt has before its questions: the document, as much of it as is read."""
    return [words.begin, *prefix, *text[:longest], words.end]


@torch.no_grad()
def ask(
    model: Mini, words: Vocabulary, documents: list[list[int]], asked: list[tuple[list[int], list[int]]]
) -> np.ndarray:
    """Log-odds of every answer to every question, in shared attention; a question has its tokens and their places."""
    device, answers = model.b.device, sum(len(places) for _, places in asked)
    scores = np.zeros((len(documents), answers))
    order = sorted(range(len(documents)), key=lambda n: len(documents[n]))
    for start in range(0, len(order), 16):
        chosen = order[start : start + 16]
        width = max(len(documents[n]) for n in chosen) + sum(len(tokens) for tokens, _ in asked)
        ids, positions, segments = (np.zeros((len(chosen), width), dtype=np.int64) for _ in range(3))
        slots = np.zeros((len(chosen), answers), dtype=np.int64)
        for row, n in enumerate(chosen):
            column = begin = len(documents[n])
            ids[row, :begin], positions[row, :begin], segments[row, :begin] = documents[n], range(begin), 1
            found: list[int] = []
            for number, (tokens, places) in enumerate(asked, start=2):
                cells = slice(column, column + len(tokens))
                ids[row, cells], segments[row, cells] = tokens, number
                positions[row, cells] = np.minimum(np.arange(begin, begin + len(tokens)), model.shape.positions - 1)
                found += [column + place for place in places]
                column += len(tokens)
            slots[row] = found
        at = [torch.from_numpy(x).to(device) for x in (ids, positions, segments, slots)]
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            hidden = model(at[0], at[1], (at[2] > 0).long(), at[2])
            logits = model.logits(hidden.gather(1, at[3][..., None].expand(-1, -1, model.shape.width)))
        scores[chosen] = (logits[..., words.yes] - logits[..., words.no]).float().cpu().numpy()
    return scores


def indicator(each: Mapping[str, Any]) -> np.ndarray:
    """Which labels of a set apply to which of its documents."""
    gold = np.zeros((len(each["documents"]), len(each["labels"])), dtype=bool)
    for row, numbers in enumerate(each["gold"]):
        gold[row, numbers] = True
    return gold


def measure(scores: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    order = np.argsort(-scores.ravel(), kind="stable")
    right = gold.ravel()[order].cumsum()
    best = (2 * right / (np.arange(1, right.size + 1) + gold.sum())).max()
    decided = scores > 0
    half = 2 * (decided & gold).sum() / max(1, decided.sum() + gold.sum())
    seen = [j for j in range(gold.shape[1]) if gold[:, j].any()]
    mean = np.mean([average_precision_score(gold[:, j], scores[:, j]) for j in seen])
    return {"map": 100 * float(mean), "best_micro": 100 * float(best), "micro_at_half": 100 * float(half)}


def score_written(model: Mini, tokenizer: Tokenizer, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """For each row the log-odds of every wording of its labels."""
    found = []
    for row in rows:
        words = list(dict.fromkeys(word for label in (*row["yes"], *row["no"]) for word in worded(label)))
        found.append(dict(zip(words, score(model, tokenizer, [row["text"]], words)[0].tolist(), strict=True)))
    return found


def measure_written(odds: Sequence[Mapping[str, float]], rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Shares over all wordings; `together_f1` is the micro-F1 of the one that the package asks by default."""
    decided, alike, ranked, both = list[bool](), list[bool](), list[bool](), list[bool]()
    gold, together = list[bool](), list[tuple[bool, bool]]()
    numbers = {row["id"]: n for n, row in enumerate(rows)}
    for row, ours in zip(rows, odds, strict=True):
        for side in ("yes", "no"):
            for label in row[side]:
                answers = [ours[word] > 0 for word in label]
                decided += [answer == (side == "yes") for answer in answers]
                gold += [side == "yes"] * len(answers)
                alike.append(len(set(answers)) == 1)
                together.append((ours[worded(label)[-1]] > 0, side == "yes"))
        other = numbers.get(row.get("twin", ""))
        for word in [] if other is None else [w for label in row["yes"] if label in rows[other]["no"] for w in label]:
            ranked.append(ours[word] > odds[other][word])
            both.append(ours[word] > 0 > odds[other][word])
    shares = {"accuracy": decided, "wordings_alike": alike, "twins_ranked": ranked, "twins_decided": both}
    found = {name: 100 * float(np.mean(values)) for name, values in shares.items() if values}
    applies = np.array(gold, dtype=bool)
    said = np.array(decided, dtype=bool) == applies
    one, other = np.array(together, dtype=bool).reshape(-1, 2).T
    return found | {"micro_f1": micro_f1(said, applies), "together_f1": micro_f1(one, other)}


def micro_f1(said: np.ndarray, applies: np.ndarray) -> float:
    return 200 * float((said & applies).sum()) / max(1, int(said.sum() + applies.sum()))


def validate(model: Mini, tokenizer: Tokenizer, sets: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    model.eval()
    found = {}
    for name, each in sets.items():
        if "rows" in each:
            found[name] = measure_written(score_written(model, tokenizer, each["rows"]), each["rows"])
            continue
        gold = indicator(each)
        found[name] = measure(score(model, tokenizer, each["documents"], each["labels"]), gold)
        lists = score_lists(model, tokenizer, each["documents"], each["labels"])
        if lists is not None:
            found[name]["lists_map"] = measure(lists, gold)["map"]
    model.train()
    return found


def report(found: Mapping[str, Mapping[str, float]]) -> str:
    """A line for each set, and the means over the sets that have a value."""
    means = {
        key: float(np.mean([each[key] for each in found.values() if key in each]))
        for key in dict.fromkeys(key for each in found.values() for key in each)
    }
    return "\n".join(
        f"{name:12s} " + "  ".join(f"{key} {value:5.1f}" for key, value in each.items())
        for name, each in (*found.items(), ("mean", means))
    )


if __name__ == "__main__":
    main()
