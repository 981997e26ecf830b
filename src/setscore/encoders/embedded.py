"""Sentence embeddings from the embedded weights: the mean of a text's last hidden states, of length 1.

Training keeps this mean near the vectors of the encoder that the weights began as (all-MiniLM-L6-v2), so one file of
weights answers questions and gives cosines. A text is read as [CLS] text [SEP], without the words of a prompt.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setscore.backbones import threads_wanted
from setscore.backbones.mini import EMBEDDED_TOKENS, SPEC, default_folder, embedding_batches, load_files
from setscore.backbones.tokens import TextTokenizer
from setscore.records import IntArray

READ = 256  # tokens of a text; the vectors that training aimed at saw no more

Vectors = npt.NDArray[np.float32]


def sentence_encoder(
    folder: Path | None = None, threads: int | None = None, read: int = READ
) -> Callable[[Sequence[str]], Vectors]:
    """Texts, of which `read` tokens are read, to unit vectors [n, 384], by the packaged int8 graph: no torch."""
    session, tokenizer = load_files(folder or default_folder(), threads or threads_wanted())

    def encode(texts: Sequence[str]) -> Vectors:
        found = np.zeros((len(texts), session.get_outputs()[1].shape[1]), dtype=np.float32)
        for numbers, inputs in batches(texts, tokenizer, read):
            (found[numbers],) = session.run(["embedding"], inputs)
        return found

    return encode


def batches(
    texts: Sequence[str], tokenizer: TextTokenizer, read: int = READ, batch_tokens: int = EMBEDDED_TOKENS
) -> Iterator[tuple[list[int], dict[str, IntArray]]]:
    """Numbers of texts of like length, and what the graph is fed for their embeddings."""
    begin, end = tokenizer.special(*SPEC.begin), tokenizer.special(*SPEC.after_document)
    room = read - len(begin) - len(end)
    return embedding_batches([begin + tokenizer.first_ids(text, room) + end for text in texts], batch_tokens)
