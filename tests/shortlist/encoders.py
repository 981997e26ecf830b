"""An encoder without weights: which words a text holds."""

import re
import zlib

import numpy as np

WIDTH = 64


def encode(texts):
    """A bag of hashed words [n, WIDTH], and a little of each text's own, so that no two cosines tie by accident."""
    vectors = np.zeros((len(texts), WIDTH), dtype=np.float32)
    for row, text in enumerate(texts):
        vectors[row, zlib.adler32(text.encode()) % WIDTH] += 0.01 + zlib.crc32(text.encode()) / 2**38
        vectors[row] += 0.001
        for word in re.findall(r"\w+", text.lower()):
            vectors[row, zlib.crc32(word.encode()) % WIDTH] += 1
    return vectors
