"""Which labels the tutor is asked about each text: the next ones by meaning, some of its source, one of any, its own.

    python -m recipes.tutor.near --store prepared.npz --base encoder.safetensors --folder tutor/

What hardly ever applies teaches little. So most labels are drawn from those that the untouched sentence encoder finds
nearest to the text among all that were ever judged or written; those of the text's own source are what its writers
would be asked about. Of labels that were judged for the text it says how sure a careful reader can be. Writes near.npz.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors.torch import load_file
from torch import Tensor

from recipes import HERE
from recipes.encode import embed
from recipes.model import build
from recipes.store import Ints, Ragged, Store
from recipes.tutor.pool import Pool

BLOCK = 4096  # texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--base", type=Path, required=True, help="the encoder that says what is near")
    parser.add_argument("--folder", type=Path, required=True, help="with tokens.npz; near.npz goes there")
    parser.add_argument("--config", type=Path, default=HERE / "config.yaml")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    store, pool = Store.load(arguments.store), Pool.load(arguments.folder / "tokens.npz")
    model = build(load_file(arguments.base)).to(arguments.device).eval()
    documents = embed(model, Ragged.of([store.documents[int(n)] for n in pool.documents], np.uint16))
    worded = [store.texts[int(store.labels[int(n)][-1])] for n in pool.labels]
    labels = embed(model, Ragged.of(worded, np.uint16))
    chosen = choose(documents, labels, pool, yaml.safe_load(arguments.config.read_text())["tutored"])
    np.savez_compressed(arguments.folder / "near.npz", labels=chosen.values, offsets=chosen.offsets)
    print(f"{len(chosen)} texts, {len(chosen.values)} questions about {len(labels)} labels")


def choose(documents: Tensor, labels: Tensor, pool: Pool, settings: dict[str, Any]) -> Ragged:
    """For each document the numbers of labels of the pool, each once, in random order."""
    generator, found = np.random.default_rng(settings["seed"]), list[Ints]()
    owner = np.repeat(np.arange(len(labels)), np.diff(pool.sources.offsets))
    order = np.argsort(pool.sources.values, kind="stable")
    starts = np.searchsorted(pool.sources.values[order], np.arange(pool.source.max(initial=0) + 2))
    among = min(settings["among"], len(labels))
    for start in range(0, len(documents), BLOCK):
        best = (documents[start : start + BLOCK] @ labels.T).topk(among, dim=1).indices.cpu().numpy()
        for number, nearest in enumerate(best, start=start):
            source = pool.source[number]
            near_by = owner[order[starts[source] : starts[source + 1]]]
            parts = [
                generator.choice(nearest, min(settings["near"], among), replace=False),
                generator.choice(near_by, min(settings["source"], len(near_by)), replace=False),
                generator.integers(len(labels), size=settings["any"]),
                pool.own[number],
            ]
            found.append(generator.permutation(np.unique(np.concatenate(parts))))
    return Ragged.of(found)


if __name__ == "__main__":
    main()
