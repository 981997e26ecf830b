"""What a shortlist costs for one document with a hundred thousand labels, step by step, on two cores.

    python benchmarks/shortlist.py [--labels 100000] [--words 120] [--rounds 20]

Labels are made up: four words each, and random unit vectors in the place of their encoded texts, which the search does
not notice. The encoder is the real one; bf16 is beside fp32 with the cosine between the two. Needs the extra shortlist.
"""

import argparse
import time

import numpy as np
import torch

from setscore.shortlist import load_sentence_transformer, unit
from setscore.shortlist.fusion import best, fuse
from setscore.shortlist.index import VectorIndex
from setscore.shortlist.lexical import LexicalIndex
from setscore.shortlist.windows import split_words

K, DEPTH = 32, 256
THREADS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=120, help="of the document; a window has 128")
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    random = np.random.default_rng(0)
    words = [f"word{number}" for number in range(20_000)]
    labels = [" ".join(random.choice(words, size=4)) for _ in range(arguments.labels)]
    document = " ".join(random.choice(words, size=arguments.words))
    passages = split_words(document, most=16)
    index = VectorIndex.of(unit(random.normal(size=(arguments.labels, 384))))
    lexical = LexicalIndex.of(labels)
    plain, half = load_sentence_transformer(), load_sentence_transformer().to(torch.bfloat16)
    vectors, halves = (unit(model.encode(passages, show_progress_bar=False)) for model in (plain, half))

    def retrieve() -> np.ndarray:
        cosines, places = index.nearest(vectors, DEPTH)
        dense, found = np.full(arguments.labels, -np.inf), lexical.scores(document)
        np.maximum.at(dense, places.ravel(), cosines.ravel().astype(np.float64))
        return best(fuse([dense, np.where(found > 0, found, -np.inf)], [1.0, 0.25], DEPTH), K, dense)

    spent = {
        "encoding, fp32": timed(lambda: plain.encode(passages, show_progress_bar=False), arguments.rounds),
        "encoding, bf16": timed(lambda: half.encode(passages, show_progress_bar=False), arguments.rounds),
        "nearest labels (faiss, exact)": timed(lambda: index.nearest(vectors, DEPTH), arguments.rounds),
        "BM25": timed(lambda: lexical.scores(document), arguments.rounds),
        "all retrieval, fused": timed(retrieve, arguments.rounds),
    }
    spent["a document, fp32"] = spent["encoding, fp32"] + spent["all retrieval, fused"]
    spent["a document, bf16"] = spent["encoding, bf16"] + spent["all retrieval, fused"]
    size = f"{arguments.words} words in {len(passages)} windows"
    print(f"{arguments.labels} labels, a document of {size}, {THREADS} threads")
    print("\n| step | ms, median | share of a document in fp32 |\n|---|---:|---:|")
    for name, milliseconds in spent.items():
        print(f"| {name} | {milliseconds:.1f} | {milliseconds / spent['a document, fp32']:.2f} |")
    print(f"\ncosine between fp32 and bf16 vectors: {float((vectors * halves).sum(axis=1).mean()):.5f}")


def timed(do, rounds: int) -> float:
    """Median milliseconds."""
    do()
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        do()
        found.append(time.perf_counter() - begun)
    return 1000 * float(np.median(found))


if __name__ == "__main__":
    main()
