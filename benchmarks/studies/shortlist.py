"""What a shortlist costs for one document with a hundred thousand labels, step by step, on two cores.

    python benchmarks/studies/shortlist.py [--labels 100000] [--words 128 400] [--documents 50]

Labels and documents are made up of words of the tokenizer's vocabulary; labels get random unit vectors in the place of
their encoded texts, which the search does not notice. Encoders and indices are the real ones. Beside them what one
would write without SetScore: sentence-transformers on the document's first 256 tokens and faiss over the labels.
Milliseconds are medians over documents, each alone and the quickest of three passes, because other work on the machine
only ever adds: by the clock, and of processor time over all threads; the ratio is of the latter. OMP_NUM_THREADS=1
takes one core. Needs the extra shortlist; takes four minutes.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

if __name__ == "__main__":  # the number of threads is read when libraries load
    os.environ.setdefault("OMP_NUM_THREADS", "2")
if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

import faiss
import numpy as np
import torch

from benchmarks.common import header, options, row
from setscore.backbones.mini import default_folder, load_files
from setscore.encoders import EMBEDDED, ENCODER, Encode, load_encoder, unit
from setscore.encoders.embedded import sentence_encoder
from setscore.shortlist import Shortlist
from setscore.shortlist.fusion import best, fuse
from setscore.shortlist.index import VectorIndex
from setscore.shortlist.lexical import LexicalIndex
from setscore.shortlist.shortlist import LEXICAL_WEIGHT
from setscore.shortlist.windows import READ_TOKENS, split_words

K, DEPTH, WIDTH = 32, 256, 384
PASSES = 3
THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))
PLAIN = "sentence-transformers and faiss"
STEPS = ("encode", "dense", "lexical", "fuse", "all")
Times = dict[str, tuple[float, float]]  # milliseconds by the clock, and of processor time


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--words", type=int, nargs="+", default=[128, 400], help="of a document; a window has 128")
    parser.add_argument("--documents", type=int, default=50)
    arguments = parser.parse_args(given)
    torch.set_num_threads(THREADS)
    faiss.omp_set_num_threads(THREADS)
    random, words = np.random.default_rng(0), vocabulary()
    labels = [" ".join(drawn) for drawn in words[random.integers(len(words), size=(arguments.labels, 4))]]
    contest = contestants(labels, unit(random.normal(size=(arguments.labels, WIDTH))))
    print(f"{arguments.labels} labels, k={K}, {THREADS} threads, medians over {arguments.documents} documents.")
    print("Milliseconds a document: by the clock / of processor time.\n")
    print(header(["words", "method", *STEPS, "time, plain = 1"], left=2))
    for size in arguments.words:
        documents = [" ".join(written(random, words, size)) for _ in range(arguments.documents)]
        found = {name: measured(documents, one) for name, one in contest.items()}
        for name, times in found.items():
            cells = [f"{times[step][0]:.1f} / {times[step][1]:.1f}" if step in times else "" for step in STEPS]
            print(row([size, name, *cells, f"{times['all'][1] / found[PLAIN]['all'][1]:.2f}"]), flush=True)


def contestants(labels: Sequence[str], vectors: np.ndarray) -> "dict[str, One]":
    """What is done for one document: plainly, and with the fused search of each encoder."""
    index, lexical = VectorIndex.of(vectors), LexicalIndex.of(labels)
    plain = faiss.IndexFlatIP(WIDTH)
    plain.add(vectors)
    encoders = {
        EMBEDDED: sentence_encoder(threads=THREADS, read=READ_TOKENS),
        ENCODER: load_encoder(ENCODER, device="cpu", read=READ_TOKENS),
    }
    made = {PLAIN: plainly(load_encoder(ENCODER, device="cpu"), plain)}
    return made | {f"fused, {name}": fused(encode, index, lexical) for name, encode in encoders.items()}


def vocabulary() -> np.ndarray:
    """Whole English words of the packaged tokenizer."""
    tokenizer = load_files(default_folder(), THREADS)[1]
    spelt = (tokenizer.token(number) for number in range(tokenizer.size))
    return np.array([word for word in spelt if word and word.isascii() and word.isalpha() and len(word) > 2])


def written(random: np.random.Generator, words: np.ndarray, size: int) -> list[str]:
    """Words of four tokens in three, as English has them: every third is two that are written as one."""
    drawn, others = words.astype(object)[random.integers(len(words), size=(2, size))]
    drawn[2::3] = drawn[2::3] + others[2::3]
    return drawn.tolist()


def plainly(encode: Encode, searcher) -> "One":
    def one(clock: "Clock", document: str) -> None:
        vectors = clock.timed("encode", lambda: unit(encode([document])))
        clock.timed("dense", lambda: searcher.search(vectors, K))

    return one


def fused(encode: Encode, index: VectorIndex, lexical: LexicalIndex) -> "One":
    """The steps of `Shortlist(32).select` for a document alone."""
    windows = Shortlist(K).windows

    def one(clock: "Clock", document: str) -> None:
        vectors = clock.timed("encode", lambda: unit(encode(split_words(document, most=windows))))
        cosines, places = clock.timed("dense", lambda: index.nearest(vectors, DEPTH))
        shared = clock.timed("lexical", lambda: lexical.scores(document))

        def rank() -> np.ndarray:
            dense = np.full(len(index.vectors), -np.inf)
            np.maximum.at(dense, places.ravel(), cosines.ravel().astype(np.float64))
            words = np.where(shared > 0, shared, -np.inf)
            return best(fuse([dense, words], [1.0, LEXICAL_WEIGHT], DEPTH), K, dense)

        clock.timed("fuse", rank)

    return one


class Clock:
    """Milliseconds of named steps."""

    def __init__(self) -> None:
        self.spent: dict[str, tuple[float, float]] = {}

    def timed(self, step: str, do: Callable):
        begun, used = time.perf_counter(), time.process_time()
        result = do()
        self.spent[step] = (1000 * (time.perf_counter() - begun), 1000 * (time.process_time() - used))
        return result


One = Callable[[Clock, str], None]  # times the steps for one document


def measured(documents: Sequence[str], one: One) -> Times:
    """Medians over documents of the quickest pass; before the first, two documents only warm up."""
    passes: list[list[Times]] = []
    for _ in range(PASSES):
        rows: list[Times] = []
        for document in [*documents[:2], *documents]:
            clock = Clock()
            one(clock, document)
            whole = tuple(sum(part) for part in zip(*clock.spent.values(), strict=True))
            rows.append(clock.spent | {"all": whole})
        passes.append(rows[2:])
    quickest = [min(same, key=lambda row: row["all"][0]) for same in zip(*passes, strict=True)]
    return {step: tuple(np.median([row[step] for row in quickest], axis=0)) for step in quickest[0]}


if __name__ == "__main__":
    main()
