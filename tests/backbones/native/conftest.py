"""These tests need the extra `torch`."""

import importlib.util

MISSING = [name for name in ("torch", "transformers", "safetensors") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["test_*.py"] if MISSING else []

if not MISSING:
    import torch

    torch.set_num_threads(1)  # these models are too small to share out
