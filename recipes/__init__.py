"""How the embedded models are made, from general data to the files that ship: `python -m recipes.run`."""

from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
