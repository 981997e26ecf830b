"""What the untouched sentence encoder says: embeddings of documents and phrases, and phrases for every document.

    python -m recipes.encode --store prepared.npz --base base.safetensors --out encoded/

`--targets` names another encoder whose embeddings training keeps, where the model does not start from the one that
judges phrases. Phrases are drawn for a block of documents at a time, half of them topics where the store has any. Of
the drawn ones each document keeps some of its nearest, spread over the ranks, and a few at random. Writes
embeddings.npy, phrases.npy, cosines.npy.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from recipes.model import Mini, build, pooled
from recipes.store import Ragged, Store

NEAR, RANDOM, DRAWN, BLOCK = 24, 8, 4096, 8192
BEGIN, END = 101, 102  # [CLS], [SEP] of the encoder's vocabulary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--targets", type=Path, help="whose embeddings are kept; default: the base")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=13)
    arguments = parser.parse_args()
    started, store = time.monotonic(), Store.load(arguments.store)
    phrases = Ragged.of([store.texts[int(n)] for n in store.pool], np.uint16)

    def embeddings_of(weights: Path) -> Tensor:
        model = build(load_file(weights)).to(arguments.device).eval()
        return torch.cat([embed(model, store.documents), embed(model, phrases)])

    judged = embeddings_of(arguments.base)
    numbers, cosines = candidates(judged, len(store.documents), int(store.topics), arguments.seed)
    kept = embeddings_of(arguments.targets) if arguments.targets else judged
    arguments.out.mkdir(parents=True, exist_ok=True)
    np.save(arguments.out / "embeddings.npy", kept.cpu().numpy())
    np.save(arguments.out / "phrases.npy", numbers)
    np.save(arguments.out / "cosines.npy", cosines)
    print(f"{len(store.documents)} documents, {len(phrases)} phrases in {time.monotonic() - started:.0f} s")
    print(
        "cosine quantiles of the kept phrases:", np.quantile(cosines[::17].astype(np.float32), [0.1, 0.5, 0.9]).round(3)
    )


@torch.no_grad()
def embed(model: Mini, texts: Ragged, tokens_per_batch: int | None = None) -> Tensor:
    """[n, H] in half precision; the encoder reads at most 256 tokens, as it was trained."""
    device = model.b.device
    tokens_per_batch = tokens_per_batch or (262_144 if device.type == "cuda" else 4096)
    lengths = np.minimum(np.diff(texts.offsets), 254) + 2
    order = np.argsort(lengths, kind="stable")
    out = torch.zeros(len(texts), model.shape.width, dtype=torch.float16, device=device)
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and int(lengths[order[stop]]) * (stop + 1 - start) <= tokens_per_batch:
            stop += 1
        chosen, width = order[start:stop], int(lengths[order[stop - 1]])
        tokens = np.zeros((len(chosen), width), dtype=np.int64)
        for row, number in enumerate(chosen):
            tokens[row, : lengths[number]] = [BEGIN, *texts[int(number)][:254].tolist(), END]
        ids = torch.from_numpy(tokens).to(device)
        parts = (ids > 0).long()
        positions = torch.arange(width, device=device).expand(len(chosen), -1)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            hidden = model(ids, positions, parts, parts)
        out[torch.from_numpy(chosen).to(device)] = pooled(hidden.float(), parts, parts, 1)[:, 0].half()
        start = stop
    return out


@torch.no_grad()
def candidates(embeddings: Tensor, documents: int, topics: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pool numbers and cosines [documents, NEAR + RANDOM], nearest first; the last `topics` of the pool are topics."""
    generator = torch.Generator().manual_seed(seed)
    pool = embeddings[documents:]
    others = len(pool) - topics
    named = min(DRAWN // 2, topics)
    drawn_count = min(DRAWN, named + others)
    near, random = min(NEAR, drawn_count), min(RANDOM, drawn_count)
    numbers, cosines = [], []
    for start in range(0, documents, BLOCK):
        some = torch.randperm(others, generator=generator)[: drawn_count - named]
        drawn = torch.cat([some, others + torch.randperm(topics, generator=generator)[:named]])
        scores = embeddings[start : min(start + BLOCK, documents)] @ pool[drawn.to(pool.device)].T
        best = scores.topk(min(256, drawn_count), dim=1).indices
        # ranks 0 .. 255, the first ones more often: labels that users write are rarely the nearest phrase of all
        ranks = (torch.rand(near, generator=generator) ** 2 * best.shape[1]).long()
        other = torch.randint(drawn_count, (random,), generator=generator).to(best.device)
        chosen = torch.cat([best[:, ranks.to(best.device)], other.expand(len(best), -1)], dim=1)
        numbers.append(drawn.to(chosen.device)[chosen].int().cpu().numpy())
        cosines.append(scores.gather(1, chosen).half().cpu().numpy())
    return np.concatenate(numbers), np.concatenate(cosines)


if __name__ == "__main__":
    main()
