"""Which weights a page of results was measured with, and whether the package still ships them.

A page says so in a line of its own, `Weights: NAME DIGEST.`; when the package has other weights, `python
benchmarks/pages/all_pages.py` adds that to the line. So numbers that take hours to measure stay, and nobody takes
them for today's.
"""

import json
import re

from benchmarks.common import ROOT

MODELS = ROOT / "src" / "setscore" / "models"
LINE = re.compile(r"^Weights: `([\w-]+)` ([0-9a-f]{12})\b.*$", re.MULTILINE)


def shipped(name: str) -> str:
    """The first digits of the SHA-256 of an embedded model's graph."""
    manifest = json.loads((MODELS / name / "manifest.json").read_text(encoding="utf-8"))
    return manifest["sha256"]["model.onnx"][:12]


def made_from(name: str) -> str:
    """The SHA-256 of the float weights that an embedded model was made from."""
    manifest = json.loads((MODELS / name / "manifest.json").read_text(encoding="utf-8"))
    return str(manifest["made_from_sha256"])


def stated(name: str, digest: str) -> str:
    """The line about weights with this digest."""
    if digest == shipped(name):
        return f"Weights: `{name}` {digest}."
    return f"Weights: `{name}` {digest}, which this version no longer ships. Read the numbers as an earlier model's."


def refreshed(text: str) -> str:
    """A page whose line about its weights is true today."""
    return LINE.sub(lambda found: stated(found[1], found[2]), text)
