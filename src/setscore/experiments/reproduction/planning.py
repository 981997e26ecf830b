"""From cells to runs: which configs are made, with whose weights, and what each would cost here."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from setscore.backbones import EMBEDDED, KNOWN, backbone_spec, is_place
from setscore.backbones.host import free_host_bytes
from setscore.baselines import TRAINED
from setscore.errors import SetScoreError, unknown_name
from setscore.experiments.reproduction.registry import (
    SWEPT,
    Asked,
    Method,
    Need,
    Weights,
    methods,
    needs,
    sizes,
    templates,
    weights,
)
from setscore.experiments.runs.config import RunConfig, make_config
from setscore.prompts import Template
from setscore.scorers import Reading, make

QUESTION_TOKENS = 20  # of a question and its slot, about
LABEL_TOKENS = 8  # of a label in a list of them, with its slot
EFFICIENCY = 0.4  # of what the machine multiplies matrices with, that a model gets
EMBEDDED_GAIN = 5.0  # an embedded model multiplies int8, and not its word embeddings (measured: 6 min, not 43)
TRAINING_COST = 3  # passes' worth of work for a training step
NEW_TOKENS = 32  # that a generated answer takes, about
ACTIVATION_SHARE = 0.25  # of the weights' bytes, for a pass beside them


@dataclass(frozen=True)
class Choice:
    """What the user chose: in whose place, on which documents.

    backbone  in the place of every diffusion backbone
    places    of weights by their names in methods.yaml: folders, repositories or names of backbones
    others    whether weights are used that neither of them names: hours of training, of which SetFit's need no download
    """

    backbone: str | None = None
    places: Mapping[str, str] = field(default_factory=dict)
    slices: str | None = None
    data_dir: str | None = None
    limit: int | None = None
    label_text: str = "description"
    train_limit: int | None = None
    allow: tuple[str, ...] = ()
    others: bool = True

    def __post_init__(self) -> None:
        for name in self.places:
            if name not in weights():
                raise SetScoreError(unknown_name("weights", name, weights()))

    def place(self, found: Weights) -> str:
        """Whose answers stand for these weights."""
        if found.name in self.places:
            return self.places[found.name]
        return self.backbone if self.backbone is not None and found.backbone is not None else found.place

    def uses(self, found: Weights) -> bool:
        """Whether runs with these weights are made."""
        return self.others or found.backbone is not None or found.name in self.places

    def is_papers(self, found: Weights) -> bool:
        """Whether these are the paper's own weights, by name; a folder may hold anything."""
        return self.place(found) == found.place

    @property
    def is_paper_slice(self) -> bool:
        return self.limit is None and (self.slices or ("paper" if self.data_dir is None else "development")) == "paper"


def config_of(need: Need, choice: Choice) -> RunConfig:
    """The config of a run under the paper's protocol."""
    method = methods()[need.method]
    place = choice.place(method.weights)
    limits = [limit for limit in (choice.limit, method.limit) if limit is not None]
    options: dict[str, object] = {"decided": method.decided}
    if method.baseline is not None:
        options |= {"baseline": method.baseline, "checkpoint": place}
        options |= {} if choice.train_limit is None else {"train_limit": choice.train_limit}
    else:
        known = templates(need.dataset)
        wording = tuple(known.values()) if need.template == SWEPT else known[need.template]
        options |= {"backbone": place, "scorer": method.scorer, "template": wording}
    dataset = {
        "name": need.dataset,
        "slices": choice.slices,
        "data_dir": choice.data_dir,
        "limit": min(limits) if limits else None,
        "label_text": choice.label_text,
    }
    content = {
        "title": method.title,
        "protocol": "paper",
        "seeds": need.seeds,
        "dataset": {key: value for key, value in dataset.items() if value is not None},
        "method": options,
    }
    return make_config(content, where=f"{need.method} on {need.dataset}", allow=choice.allow)


def merged(asked: Sequence[Asked]) -> dict[tuple[str, str, str], Need]:
    """The runs that all of these cells take: one for each method, dataset and template, with all seeds."""
    found: dict[tuple[str, str, str], Need] = {}
    for one in asked:
        for need in needs(one.quantity):
            place = (need.method, need.dataset, need.template)
            seeds = set(need.seeds) | (set(found[place].seeds) if place in found else set())
            found[place] = Need(*place, seeds=tuple(sorted(seeds)))
    return found


@dataclass(frozen=True)
class Estimate:
    """What a run would cost on this machine: passes, seconds and bytes; whether the bytes are there."""

    forwards: int
    seconds: float
    memory: float
    fits: bool


def estimate(need: Need, choice: Choice, *, teraflops: float | None = None) -> Estimate:
    """Of a whole run: validation documents of every seed, test documents, every template; training where there is any.

    Work is two operations a parameter and token; the machine's speed is measured with a product of matrices, unless
    `teraflops` is that of another machine. It is an estimate, good to a factor of two or three.
    """
    method, size = methods()[need.method], sizes()[need.dataset]
    limit = min([one for one in (choice.limit, method.limit) if one is not None], default=size.documents)
    documents = min(size.documents, limit) + min(200, limit) * len(need.seeds)
    wordings = len(templates(need.dataset)) if need.template == SWEPT else 1
    parameters, width = _parameters(method, choice)
    forwards, tokens = _work(method, choice, need.dataset)
    forwards, tokens = forwards * documents * wordings, tokens * documents * wordings
    if method.baseline in TRAINED:
        learned = min(choice.train_limit or size.train, size.train)
        tokens += TRAINING_COST * 2 * learned * min(size.tokens, 512)
    memory = parameters * width * (1 + ACTIVATION_SHARE)
    replaced = choice.place(method.weights) != method.weights.place  # by a model whose experts are its own
    active = parameters if replaced else method.weights.active or parameters
    speed, room = (_speed(), _free()) if teraflops is None else (teraflops * 1e12, math.inf)
    if replaced and choice.place(method.weights).partition("?")[0] in EMBEDDED:
        speed *= EMBEDDED_GAIN
    return Estimate(forwards, 2 * active * tokens / (speed * EFFICIENCY), memory, memory < room)


def _parameters(method: Method, choice: Choice) -> tuple[float, float]:
    """Parameters and bytes of each; of a backbone that takes another's place its own."""
    place = choice.place(method.weights)
    if place == method.weights.place or method.baseline is not None:
        return method.weights.parameters, method.weights.bytes
    base = place.partition("?")[0]
    if base in KNOWN or is_place(base):
        spec = backbone_spec(place)
        return float(spec.parameters), 1.0 if spec.family == "mini" else 2.0
    return method.weights.parameters, method.weights.bytes


def _work(method: Method, choice: Choice, dataset: str) -> tuple[int, int]:
    """Passes and tokens for one document."""
    size = sizes()[dataset]
    labels = size.asked if method.prompted else size.labels
    if method.baseline is not None:
        passes = labels if method.baseline.startswith(("bart", "deberta")) else 1
        written = NEW_TOKENS if method.decided == "own" else 0
        return passes, passes * (size.tokens + QUESTION_TOKENS) + written
    place = choice.place(method.weights).partition("?")[0]
    shared = place in KNOWN and KNOWN[place].attention[0] == "shared"
    passes = make(method.scorer, Template.of("express"), Reading()).cost(labels, shared=shared)
    question = QUESTION_TOKENS if method.scorer == "per_label" else labels * LABEL_TOKENS
    return passes, passes * size.tokens + (labels if shared else passes) * question


@cache
def _speed() -> float:
    """Operations a second in products of matrices, on the GPU if there is one."""
    try:
        import torch

        if torch.cuda.is_available():
            return _timed_gpu(torch)
    except ImportError:
        pass
    a = np.ones((1024, 1024), dtype=np.float32)
    a @ a
    begun, rounds = time.perf_counter(), 0
    while time.perf_counter() - begun < 0.1:
        a @ a
        rounds += 1
    return 2 * 1024**3 * rounds / (time.perf_counter() - begun)


def _timed_gpu(torch: object) -> float:
    a = torch.ones((8192, 8192), dtype=torch.bfloat16, device="cuda")  # type: ignore[attr-defined]
    a @ a
    torch.cuda.synchronize()  # type: ignore[attr-defined]
    begun = time.perf_counter()
    for _ in range(10):
        a @ a
    torch.cuda.synchronize()  # type: ignore[attr-defined]
    return 10 * 2 * 8192**3 / (time.perf_counter() - begun)


@cache
def _free() -> int:
    try:
        import torch

        if torch.cuda.is_available():
            return int(torch.cuda.mem_get_info()[0])
    except ImportError:
        pass
    return free_host_bytes()
