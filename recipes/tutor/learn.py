"""The tutor learns what was judged and written by hand, once through, is measured, and answers what it is asked.

    python -m recipes.tutor.learn --folder tutor/ --out tutored.npz --validation validation.json --minutes 8

On one GPU. FOLDER holds weights.safetensors and what recipes.tutor.tokens and recipes.tutor.near wrote. The answers
have the numbers of documents and labels of the store. `--minutes` bounds the learning: the schedule is made for what
fits. What was learned stays in FOLDER (learned.safetensors, half precision), so that a run that was stopped behind it
goes on from there, on another machine too.
"""

import argparse
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from recipes.store import Ragged
from recipes.tutor.corrections import correct, save, to_learn
from recipes.tutor.pool import Pool
from recipes.tutor.rows import Rows, batches
from recipes.tutor.tokens import Questions, wordings
from recipes.tutored import Tutored
from recipes.validate import indicator, measure, measure_written, report
from setscore.backbones.causal.model import CausalModel, build
from setscore.backbones.causal.weights import LEARNED, WEIGHTS, corrected, unpack

TRIED = 10  # steps until the time of a step is known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="the answers, .npz")
    parser.add_argument("--validation", type=Path, help="what recipes.tutor.tokens read")
    parser.add_argument("--minutes", type=float, default=8.0, help="of learning; default: 8")
    parser.add_argument("--rows", type=int, default=48, help="of a batch; default: 48")
    parser.add_argument("--columns", type=int, default=1024, help="tokens of a row; default: 1024")
    parser.add_argument("--rate", type=float, default=3e-4, help="learning rate; default: 3e-4")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    torch.set_float32_matmul_precision("high")
    device, learned = torch.device(arguments.device), arguments.folder / LEARNED
    if not learned.exists():
        tutor = correct(load(arguments.folder, device))
        learn(tutor, Questions.load(arguments.folder / "tokens.npz", "learn"), arguments)
        save(to_learn(tutor), learned)
        del tutor
    tutor = load(arguments.folder, device)
    if arguments.validation:
        odds = answer(
            tutor, Questions.load(arguments.folder / "tokens.npz", "measure"), arguments.rows, arguments.columns
        )
        found = measured(odds, json.loads(arguments.validation.read_text()))
        (arguments.folder / "measured.json").write_text(json.dumps(found, indent=2) + "\n")
        print(report(found), flush=True)
    pool, asked = Pool.load(arguments.folder / "tokens.npz"), near(arguments.folder)
    odds = answer(tutor, asked, arguments.rows, arguments.columns).astype(np.float16)
    labels = pool.labels[asked.questions.values - len(pool.documents)]
    Tutored(pool.documents, Ragged(labels, asked.questions.offsets), odds).save(arguments.out)
    print(f"{100 * (odds > 0).mean():.1f}% of {len(odds)} answers are yes", flush=True)


def near(folder: Path) -> Questions:
    """What recipes.tutor.near chose, in tokens: labels stand behind the documents."""
    pool = Questions.load(folder / "tokens.npz", "pool")
    with np.load(folder / "near.npz", allow_pickle=False) as saved:
        questions = Ragged(saved["labels"] + len(pool.document), saved["offsets"])
    return Questions(pool.texts, pool.document, questions, np.full(len(questions.values), np.nan, dtype=np.float16))


def load(folder: Path, device: torch.device) -> CausalModel:
    """The language model, with what it has learned if it has."""
    state, numbers = unpack(folder / WEIGHTS, str(device))
    if (folder / LEARNED).exists():
        state = corrected(state, folder / LEARNED)
    if device.type == "cuda":  # matrices as they are computed with
        state = {name: half(value) if name.startswith(("word", "layers")) else value for name, value in state.items()}
    tutor = build(state, *numbers)
    if device.type == "cuda":
        for layer in tutor.layers:
            layer.compile()
    return tutor


def half(value: torch.Tensor) -> torch.Tensor:
    return value.bfloat16() if value.dim() > 1 else value


def learn(tutor: CausalModel, asked: Questions, arguments: argparse.Namespace) -> None:
    """Cross-entropy of every answer; the rate falls to nothing with the last batch that the time allows."""
    order = np.random.default_rng(arguments.seed).permutation(len(asked.document))
    stream = list(batches(asked, order.tolist(), rows=arguments.rows, columns=arguments.columns))
    steps, began, sums = len(stream), time.monotonic(), torch.zeros(3)
    shuffled = np.random.default_rng(arguments.seed).permutation(steps)
    body = [p for name, p in to_learn(tutor).items() if not name.startswith("head")]
    groups = [{"params": body, "lr": 1.0}, {"params": list(tutor.head.parameters()), "lr": 3.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.0, fused=arguments.device != "cpu")
    ends = steps
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: arguments.rate * min(1.0, (step + 1) / 30, max(0.0, ends - step) / ends)
    )
    for step, number in enumerate(shuffled):
        batch = stream[number]
        odds = ask(tutor, batch)
        answers = torch.from_numpy(asked.answers[batch.numbers].astype(np.float32)).to(odds.device)
        loss = functional.binary_cross_entropy_with_logits(odds, answers)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(body, 1.0)
        optimizer.step()
        rate.step()
        right = ((odds > 0) == (answers > 0.5)).float().mean()
        sums += torch.tensor([1.0, float(loss.detach()), float(right)])
        if step == TRIED:  # the first steps compile
            began, before = time.monotonic(), time.monotonic() - began
        if step == 2 * TRIED:
            each = (time.monotonic() - began) / TRIED
            ends = min(steps, int((60 * arguments.minutes - before) / each))
            print(f"{each:.2f} s a step, {steps} steps in all, {ends} in the time", flush=True)
        if step % 25 == 0:
            print(f"step {step}: loss {sums[1] / sums[0]:.3f}, right {sums[2] / sums[0]:.3f}", flush=True)
            sums.zero_()
        if step + 1 >= ends:
            break


def ask(tutor: CausalModel, batch: Rows) -> Tensor:
    """Log-odds [S] of a batch."""
    device = tutor.head.weight.device
    arrays = (batch.tokens, batch.positions, batch.parts, batch.segments, batch.slots)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
        return tutor(*(torch.from_numpy(array).to(device, non_blocking=True) for array in arrays))  # type: ignore[no-any-return]


@torch.no_grad()
def answer(tutor: CausalModel, asked: Questions, rows: int, columns: int) -> np.ndarray:
    """Log-odds of every question of every example."""
    odds, began = np.full(len(asked.answers), np.nan, dtype=np.float32), time.monotonic()
    tutor.eval()
    waiting = list[tuple[Rows, Tensor]]()  # one batch is read while the next is computed
    for batch in ahead(batches(asked, range(len(asked.document)), rows=rows, columns=columns)):
        waiting.append((batch, ask(tutor, batch)))
        if len(waiting) > 1:
            first, found = waiting.pop(0)
            odds[first.numbers] = found.cpu().numpy()
    for last, found in waiting:
        odds[last.numbers] = found.cpu().numpy()
    if not np.isfinite(odds).all():
        raise ValueError("an answer is not finite.")
    print(f"{len(odds)} answers in {time.monotonic() - began:.0f} s", flush=True)
    return odds


def ahead(stream: Iterator[Rows]) -> Iterator[Rows]:
    """The same, made by a thread while the GPU works."""
    queue: Queue[Rows | None] = Queue(maxsize=8)

    def work() -> None:
        for each in stream:
            queue.put(each)
        queue.put(None)

    threading.Thread(target=work, daemon=True).start()
    while (each := queue.get()) is not None:
        yield each


def measured(odds: np.ndarray, sets: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """What recipes.validate measures of the smaller models; `odds` in the order of `recipes.tutor.tokens.measured`."""
    found, at = {}, 0
    for name, each in sets.items():
        if "rows" in each:
            answers = []
            for row in each["rows"]:
                words = wordings(row)
                answers.append(dict(zip(words, odds[at : at + len(words)].tolist(), strict=True)))
                at += len(words)
            found[name] = measure_written(answers, each["rows"])
            continue
        gold = indicator(each)
        found[name] = measure(odds[at : at + gold.size].reshape(gold.shape), gold)
        at += gold.size
    return found


if __name__ == "__main__":
    main()
