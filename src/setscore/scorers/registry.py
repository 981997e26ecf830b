"""Scorers by name: `per_label`, or with options `permutation?orders=8` and `jsr?sweeps=2&seed=unary`."""

import importlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from setscore.errors import SetScoreError, unknown_name
from setscore.named import split_options
from setscore.prompts import SET_LAYOUTS, SetTemplate, Template
from setscore.scorers.base import Scorer
from setscore.scorers.per_label import PerLabelScorer, Reading
from setscore.scorers.seeded import Learner

# Where each lives, and what it is called there; scipy's solvers are only imported by the scorers that need them.
SCORERS = {
    "per_label": ("setscore.scorers.per_label", "PerLabelScorer"),
    "unary": ("setscore.scorers.unary", "UnaryScorer"),
    "permutation": ("setscore.scorers.permutation", "PermutationScorer"),
    "jsr": ("setscore.scorers.jsr", "JsrScorer"),
    "gibbs": ("setscore.scorers.gibbs", "GibbsScorer"),
    "bp": ("setscore.scorers.propagation", "PropagationScorer"),
    "milp": ("setscore.scorers.programme", "ProgrammeScorer"),
    "subset": ("setscore.scorers.subset", "SubsetScorer"),
}
WITH_LAYOUT = ("unary", "permutation", "jsr", "gibbs")  # have an option `layout`: how labels and answers are written
_NOT_OPTIONS = {"reading", "prompt", "cuts", "seen"}


def make(name: str, template: Template, reading: Reading, learned: Mapping[str, Any] | None = None) -> Scorer:
    """A scorer by name, with what one like it has learned.

    `template` is the wording of per-label questions. In one prompt labels stand as the option `layout` says, or else
    as the backbone knows them best.
    """
    base, given = (name, {}) if name in SCORERS else split_options(name, "scorer")
    if base not in SCORERS:
        raise SetScoreError(unknown_name("scorer", base, SCORERS))
    if base == "per_label":
        if given:
            raise SetScoreError(f"the scorer per_label has no options, got {name.partition('?')[2]!r}.")
        return PerLabelScorer(template, reading)
    if reading.long_documents == "passages":
        raise SetScoreError(
            f"long_documents='passages' asks label by label: it needs the scorer per_label, not {base}."
        )
    home, kind_name = SCORERS[base]
    kind = getattr(importlib.import_module(home), kind_name)
    known = {entry.name: entry for entry in fields(kind) if entry.name not in _NOT_OPTIONS}
    values: dict[str, Any] = {}
    if "layout" in given and base in WITH_LAYOUT:
        values["prompt"] = _layout(base, given.pop("layout"))
    for key, value in given.items():
        if key not in known:
            options = [*known, *(["layout"] if base in WITH_LAYOUT else [])]
            raise SetScoreError(unknown_name(f"option of the scorer {base}", key, options))
        if key == "seed":
            values[key] = _seed(base, value, template, reading)
        else:
            values[key] = _value(base, key, value, known[key].default)
    if "seed" in known and "seed" not in values:
        values["seed"] = make("per_label", template, reading)
    if any(entry.name == "reading" for entry in fields(kind)):
        values["reading"] = reading
    scorer: Scorer = kind(**values)
    return scorer.restore(learned) if learned and isinstance(scorer, Learner) else scorer


def seed_of(name: str) -> str | None:
    """The name of the scorer that another one starts from; None for one that starts from nothing."""
    base, given = split_options(name, "scorer")
    home, kind = SCORERS[base]
    starts = any(entry.name == "seed" for entry in fields(getattr(importlib.import_module(home), kind)))
    return given.get("seed", "per_label") if starts else None


def _seed(scorer: str, name: str, template: Template, reading: Reading) -> Scorer:
    try:
        seed = make(name, template, reading)
    except SetScoreError as error:
        raise SetScoreError(f"the option seed of the scorer {scorer}: {error}") from error
    if isinstance(seed, Learner):  # what it learns would not reach it in there
        raise SetScoreError(
            f"the option seed of the scorer {scorer} is a scorer that starts from nothing, per_label, unary or"
            f" permutation; got {name!r}."
        )
    return seed


def _layout(scorer: str, name: str) -> SetTemplate:
    if name not in SET_LAYOUTS:
        raise SetScoreError(unknown_name(f"layout of the scorer {scorer}", name, SET_LAYOUTS))
    return SET_LAYOUTS[name]


def _value(scorer: str, key: str, text: str, default: object) -> object:
    kind = type(default)
    try:
        return kind(text)  # type: ignore[call-arg]
    except ValueError as error:
        wanted = {int: "a whole number", float: "a number"}[kind]
        raise SetScoreError(f"the option {key} of the scorer {scorer} is {wanted}, got {text!r}.") from error
