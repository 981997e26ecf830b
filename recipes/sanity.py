"""Is it a masked-diffusion language model? Loss at three mask ratios on held-out text, and slot bias of label lists.

    python -m recipes.sanity --weights weights.safetensors --tokenizer tokenizer.json --data DATA --out sanity.json

Held-out text: the last passages of books.txt, which training does not take (sources/running.py). Beside the loss
stands what reading no context gives: the entropy of the held-out text's own unigram distribution, which no such model
can beat, and the loss of the unigram distribution of the training text. Slot bias: lists of ten labels in random order
under general documents, all answers masked, at the end as the paper has them and behind each label; the mean log-odds
of each slot, as the paper's Figure 2 shows it.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch.nn import functional

from recipes.model import Mini, build
from recipes.prepare import books, read_labelled
from recipes.sources.rows import Row
from recipes.store import tokenize
from recipes.vocabulary import Vocabulary

RATIOS = (0.15, 0.5, 0.85)
LABELS_PER_LIST = 10
TRAINING_PASSAGES = 8000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("weights", "tokenizer", "data", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=200)
    parser.add_argument("--seed", type=int, default=13)
    arguments = parser.parse_args()
    model = build(load_file(arguments.weights)).eval()
    tokenizer = Tokenizer.from_file(str(arguments.tokenizer))
    read, kept_apart = books(arguments.data)
    known, new = (
        [x[:254] for x in tokenize(tokenizer, [row.document for row in rows])]
        for rows in (read[:TRAINING_PASSAGES], kept_apart)
    )
    tokens = new[: arguments.passages]
    rows = [row for row in islice(read_labelled(arguments.data, {}, 1), arguments.passages) if row is not None]
    generator, words = np.random.default_rng(arguments.seed), Vocabulary.of(tokenizer)
    result = {
        "passages": len(tokens),
        **unigrams(known, new),
        "masked_loss": {str(t): masked_loss(model, words, tokens, t, generator) for t in RATIOS},
        "slot_log_odds": {
            layout: slot_bias(model, words, tokenizer, rows, inline=layout == "inline", seed=arguments.seed)
            for layout in ("paper", "inline")
        },
    }
    arguments.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def unigrams(known: list[list[int]], new: list[list[int]]) -> dict[str, float]:
    """Nats per token of the new text: its own entropy, and under the distribution of the known one."""
    size = 1 + max(token for passage in (*known, *new) for token in passage)
    theirs, ours = (np.bincount(np.concatenate(texts), minlength=size) for texts in (known, new))
    shares, seen = ours / ours.sum(), ours > 0
    learned = (theirs + 0.1) / (theirs + 0.1).sum()
    return {
        "unigram_entropy": float(-(shares[seen] * np.log(shares[seen])).sum()),
        "unigram_model": float(-(shares[seen] * np.log(learned[seen])).sum()),
    }


@torch.no_grad()
def masked_loss(
    model: Mini, words: Vocabulary, tokens: list[list[int]], ratio: float, generator: np.random.Generator
) -> float:
    """Mean cross-entropy of the masked tokens in nats; every token is masked with probability `ratio`."""
    total, count = 0.0, 0
    for passage in tokens:
        ids = torch.tensor([[words.begin, *passage, words.end]])
        hidden_tokens = torch.from_numpy(generator.random(ids.shape) < ratio)
        hidden_tokens[:, [0, -1]] = False
        if not hidden_tokens.any():
            continue
        ones = torch.ones_like(ids)
        states = model(ids.masked_fill(hidden_tokens, words.mask), torch.arange(ids.shape[1])[None], ones, ones)
        loss = functional.cross_entropy(model.logits(states[hidden_tokens]), ids[hidden_tokens], reduction="sum")
        total, count = total + float(loss), count + int(hidden_tokens.sum())
    return total / count


@torch.no_grad()
def slot_bias(
    model: Mini, words: Vocabulary, tokenizer: Tokenizer, rows: Sequence[Row], *, inline: bool, seed: int
) -> list[float]:
    """Mean log-odds of each slot over documents and random label orders: all equal where there is no slot bias."""
    generator, sums = np.random.default_rng(seed), np.zeros(LABELS_PER_LIST)
    for row in rows:
        labels = [label[0] for label in (*row.yes[:1], *row.no)]
        chosen = tokenize(tokenizer, [labels[n] for n in generator.permutation(len(labels))[:LABELS_PER_LIST]])
        (document,) = tokenize(tokenizer, [row.document])
        listed, places = words.listed(chosen, [words.mask] * len(chosen), inline=inline)
        prefix = words.inline_prefix if inline else words.list_prefix
        ids = [words.begin, *prefix, *document[:200], words.end]
        slots = [len(ids) + place for place in places]
        given = torch.tensor([[*ids, *listed, words.end][: model.shape.positions]])
        ones = torch.ones_like(given)
        logits = model.logits(model(given, torch.arange(given.shape[1])[None], ones, ones)[0, slots])
        sums[: len(slots)] += (logits[:, words.yes] - logits[:, words.no]).numpy()
    return [round(float(value), 3) for value in sums / len(rows)]


if __name__ == "__main__":
    main()
