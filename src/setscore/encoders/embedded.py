"""Sentence embeddings from the embedded weights: the mean of a text's last hidden states, of length 1.

Training keeps this mean near the vectors of the encoder that the weights began as (all-MiniLM-L6-v2), so one file of
weights answers questions and gives cosines. A text is read as [CLS] text [SEP], without the words of a prompt.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setscore.backbones.mini import GRID, SPEC, default_folder, load_files
from setscore.backbones.tokens import TextTokenizer
from setscore.records import IntArray

READ = 256  # tokens of a text; the vectors that training aimed at saw no more
# Measured on two cores: a text alone leaves the matrix units idle, a larger batch leaves the cache.
BATCH_TOKENS = 2048

Vectors = npt.NDArray[np.float32]


def sentence_encoder(
    folder: Path | None = None, threads: int | None = None, read: int = READ
) -> Callable[[Sequence[str]], Vectors]:
    """Texts, of which `read` tokens are read, to unit vectors [n, 384], by the packaged int8 graph: no torch."""
    session, tokenizer = load_files(folder or default_folder(), threads)

    def encode(texts: Sequence[str]) -> Vectors:
        found = np.zeros((len(texts), session.get_outputs()[1].shape[1]), dtype=np.float32)
        for numbers, inputs in batches(texts, tokenizer, read):
            (found[numbers],) = session.run(["embedding"], inputs)
        return found

    return encode


def batches(
    texts: Sequence[str], tokenizer: TextTokenizer, read: int = READ, batch_tokens: int = BATCH_TOKENS
) -> Iterator[tuple[list[int], dict[str, IntArray]]]:
    """Numbers of texts of one width, and what the graph is fed for their embeddings: no slot, so no head."""
    begin, end = tokenizer.special(*SPEC.begin), tokenizer.special(*SPEC.after_document)
    room = read - len(begin) - len(end)
    rows = [begin + tokenizer.first_ids(text, room) + end for text in texts]
    by_width: dict[int, list[int]] = {}  # a text is as wide in a batch as it is alone, so that its vector is the same
    for number, row in enumerate(rows):
        by_width.setdefault(-(-len(row) // GRID) * GRID, []).append(number)
    for width, numbers in by_width.items():
        size = max(1, batch_tokens // width)
        for start in range(0, len(numbers), size):
            batch = numbers[start : start + size]
            yield batch, _inputs([rows[place] for place in batch], width)


def _inputs(rows: Sequence[tuple[int, ...]], width: int) -> dict[str, IntArray]:
    """Rows of token ids as documents without questions."""
    shape = (len(rows), width)
    token_ids, segments = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for place, row in enumerate(rows):
        token_ids[place, : len(row)], segments[place, : len(row)] = row, 1
    return {
        "token_ids": token_ids,
        "positions": np.ascontiguousarray(np.broadcast_to(np.arange(shape[1], dtype=np.int64), shape)),
        "segments": segments,
        "slots": np.zeros((shape[0], 0), dtype=np.int64),
        "words": np.zeros(0, dtype=np.int64),
        "embedded": np.arange(shape[0], dtype=np.int64),
    }
