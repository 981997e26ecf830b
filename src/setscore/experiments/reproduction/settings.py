"""What this package is set to, under the names that the paper's tables of settings have."""

from dataclasses import fields
from functools import cache
from typing import Any

from setscore.backbones.specs import KNOWN
from setscore.baselines.nli import HYPOTHESES
from setscore.baselines.supervised import SigmoidHead
from setscore.baselines.text_to_set import T5_SETTINGS, TextToSet
from setscore.baselines.training import Settings
from setscore.calibration.paper import TEMPERATURES, THRESHOLDS
from setscore.ensemble import simplex
from setscore.errors import SetScoreError
from setscore.experiments.protocol import PAPER, VALIDATION
from setscore.experiments.reproduction.registry import REPLICATION, blends, methods, sizes, templates
from setscore.metrics.measures import ECE_BINS
from setscore.prompts import VERBALIZERS
from setscore.scorers import Reading
from setscore.scorers.permutation import PermutationScorer
from setscore.scorers.unary import UnaryScorer

GB = 1e9
STATED = {
    "dllm.batch_size": "batches are filled by tokens here, and scores do not depend on them",
    "memory.llada_8b_activations": "what a pass takes depends on its batch; the measured peak is another cell",
}


@cache
def settings() -> dict[str, Any]:
    """Values by name, as in "supervised.bert.epochs" and "dllm.tau"."""
    found = {f"supervised.{name}.{key}": value for name in ("bert", "roberta") for key, value in _trained().items()}
    t5 = _of(T5_SETTINGS, TextToSet.length, TextToSet.batch_size)
    found |= {f"supervised.t5.{key}": value for key, value in t5.items()}
    return found | {f"dllm.{key}": value for key, value in _dllm().items()} | _others()


def setting(name: str) -> Any:
    if name not in settings():
        raise SetScoreError(f"there is no setting {name!r}; add it to settings.py.")
    return settings()[name]


def _trained() -> dict[str, Any]:
    return _of(Settings(), SigmoidHead.length, SigmoidHead.batch_size)


def _of(one: Settings, length: int, batch: int) -> dict[str, Any]:
    plain = {field.name: getattr(one, field.name) for field in fields(one)}
    return {
        "learning_rate": plain["learning_rate"],
        "weight_decay": plain["weight_decay"],
        "batch_size": plain["batch_size"],
        "eval_batch_size": batch,
        "epochs": plain["epochs"],
        "max_length": length,
        "warmup_ratio": plain["warmup"],
        "lr_schedule": "linear",
        "optimizer": "AdamW",
        "adam_beta2": plain["betas"][1],
        "adam_epsilon": plain["epsilon"],
        "gradient_clip": plain["clip"],
        "mixed_precision": plain["precision"],
    }


def _dllm() -> dict[str, Any]:
    answers = VERBALIZERS["yes/no"]
    sweeps = {int(name[-1]) for name in methods() if "_jsr_" in name}
    orders = {int(name[-1]) for name in methods() if name.startswith("llada_base_unary_perm")}
    shortlist = int(PAPER.shortlists["eurlex"].partition(":")[2])
    return {
        "K": [UnaryScorer().contexts, PermutationScorer().orders],
        "S": sorted(sweeps),
        "T": sorted(TEMPERATURES),
        "tau": sorted(THRESHOLDS),
        "k_shortlist": [shortlist, sizes()["aapd"].asked],
        "max_doc_tokens": Reading().max_document_tokens,
        "seed": list(REPLICATION),
        "verbalizers": [f" {answers.yes}", f" {answers.no}"],
        "orders": sorted(orders),
        "validation": VALIDATION,
        "llada2_mini_documents": methods()["llada2_mini_int4"].limit,
    }


def _others() -> dict[str, Any]:
    three = next(blend for blend in blends().values() if len(blend.members) == 3)
    return {
        "metrics.ece_bins": ECE_BINS,
        "templates.nli": len(HYPOTHESES),
        "templates.llada": len(templates("reuters")),
        "ensemble.grid": len(simplex(3, three.steps)),
        "memory.llada_8b_weights": KNOWN["llada-8b-base"].parameters * 2 / GB,
        "memory.dream_7b_weights": KNOWN["dream-7b-base"].parameters * 2 / GB,
        "memory.llada2_mini_parameters": KNOWN["llada2-mini"].parameters / GB,
    }
