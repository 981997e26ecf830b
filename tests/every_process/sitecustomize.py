"""Python imports this at its start where it finds it: so every process of a test, those of Ray too, knows `fake`."""

import importlib.util

if importlib.util.find_spec("setscore") is not None:
    from setscore.backbones import BACKBONES

    BACKBONES["fake"] = "fake_module"
