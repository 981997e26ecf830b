"""Training on one GPU: packed batches made by worker processes, bf16, resumable, a log that can be plotted.

    python -m recipes.train --store prepared.npz --encoded encoded/ --base base.safetensors \\
        --tokenizer tokenizer.json --out run/ --steps 1200 --validation validation.json

Six losses (weights in config.yaml): cross-entropy over the vocabulary at the answer slots; across the labels of a
set of which exactly one applies; the distance of two log-odds that ask the same in other words; how far the log-odds
of one question stand apart for two nearly equal texts of which only one has the answer yes; masked diffusion on
running text and answers, weighted 1 / t; and the distance of the sentence embedding from the untouched encoder's.
Writes weights.safetensors (averaged over the steps), last.safetensors, state.pt (to go on after an interruption) and
log.jsonl.
"""

import argparse
import copy
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from recipes import HERE
from recipes.batches import Batch, pack
from recipes.kinds import Examples
from recipes.model import build, pooled
from recipes.questions import Cosines
from recipes.store import Store
from recipes.tutored import Tutored
from recipes.validate import report, validate
from recipes.vocabulary import Vocabulary

MARGIN = 4.0  # log-odds: as far as a sure yes is from a sure no


def main() -> None:
    arguments = parse()
    config = yaml.safe_load(arguments.config.read_text())["train"]
    for setting in arguments.set:
        change(config, *setting.split("=", 1))
    tokenizer = Tokenizer.from_file(str(arguments.tokenizer))
    words, store = Vocabulary.of(tokenizer), Store.load(arguments.store)
    cosines = Cosines(np.load(arguments.encoded / "phrases.npy"), np.load(arguments.encoded / "cosines.npy"))
    if config["kinds"].get("tutored") and not arguments.tutored:
        raise SystemExit("kinds.tutored needs --tutored: what recipes.tutor.learn wrote.")
    tutored = Tutored.load(arguments.tutored) if arguments.tutored else None
    examples = partial(Examples, store, cosines, words, config, tutored=tutored)
    seed = arguments.seed or config["seed"]
    batches = make_batches(lambda worker: examples((seed, worker)), config, arguments.workers)
    next(batches)  # the workers fork before the GPU is touched
    torch.manual_seed(config["seed"])
    torch.set_float32_matmul_precision("high")
    torch.set_num_threads(min(2, torch.get_num_threads()))  # the other cores make batches
    device = torch.device(arguments.device)
    run = Run(arguments, config, words, device)
    for _ in range(run.step):  # the batches that were learned from before the interruption
        next(batches)
    run.targets = torch.from_numpy(np.load(arguments.encoded / "embeddings.npy")).to(device)
    run.loop(batches)
    run.finish()
    if arguments.validation:
        sets = json.loads(arguments.validation.read_text())
        found = validate(run.averaged, tokenizer, sets)
        (arguments.out / "validation.json").write_text(json.dumps(found, indent=2) + "\n")
        print(report(found))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("store", "encoded", "base", "tokenizer", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--validation", type=Path)
    parser.add_argument(
        "--teacher", type=Path, nargs="+", default=[], help="weights that answer beside the cosine, and where it cannot"
    )
    parser.add_argument("--tutored", type=Path, help="answers of a tutor, for kinds.tutored")
    parser.add_argument("--config", type=Path, default=HERE / "config.yaml")
    parser.add_argument("--steps", type=int, default=1200, help="the schedule's length")
    parser.add_argument("--stop-after", type=float, default=math.inf, help="minutes; save and stop, to go on later")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings, e.g. kinds.phrases=0.3")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--save-every", type=int, default=200, help="steps")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    return arguments


def change(config: dict[str, Any], name: str, value: str) -> None:
    """One setting of the configuration; a name that is not there is an error."""
    *path, last = name.split(".")
    for part in path:
        config = config[part]
    if last not in config:
        raise KeyError(f"{name} is no setting; there are {sorted(config)}.")
    config[last] = yaml.safe_load(value)


def make_batches(examples: Callable[[int], Examples], config: Mapping[str, Any], workers: int) -> Iterator[Batch]:
    """Batches in a fixed order: worker 0, 1, ..., 0, 1, ... each with examples of its own."""

    def stream(worker: int) -> Iterator[Batch]:
        return pack(iter(examples(worker)), config["rows"], config["columns"])

    if workers == 0:
        yield from stream(0)
        return
    context = multiprocessing.get_context("fork")

    def work(worker: int, queue: Any) -> None:
        for batch in stream(worker):
            queue.put([getattr(batch, field.name) for field in fields(batch)])

    queues = [context.Queue(maxsize=6) for _ in range(workers)]
    for worker, queue in enumerate(queues):
        context.Process(target=work, args=(worker, queue), daemon=True).start()
    while True:
        for queue in queues:
            yield Batch(*queue.get())


def blend(yes: Tensor, odds: Tensor, share: float, known: float = 0.0) -> Tensor:
    """Guesses of the cosine move towards the teacher by `share`, known answers by `known`, missing ones are its own."""
    guessed = (yes > 0) & (yes < 1)
    both = torch.lerp(yes.logit(), odds, share).sigmoid()
    softened = torch.lerp(yes, odds.sigmoid(), known)
    return torch.where(yes.isnan(), odds.sigmoid(), torch.where(guessed, both, softened))


class Run:
    """The state of one training run, and its steps."""

    def __init__(
        self, arguments: argparse.Namespace, config: Mapping[str, Any], words: Vocabulary, device: torch.device
    ):
        self.arguments, self.config, self.words, self.device = arguments, config, words, device
        self.model = build(load_file(arguments.base)).to(device)
        self.averaged = copy.deepcopy(self.model)
        self.model.dropout = config["dropout"]
        self.forward = torch.compile(self.model) if arguments.compile else self.model
        if not arguments.teacher and (config["unknown"] or config["kinds"]["told"]):
            raise SystemExit("Questions that only a teacher can answer (unknown, kinds.told) need --teacher.")
        self.teachers = []  # each with what asks it
        for path in arguments.teacher:
            teacher = build(load_file(path)).to(device).eval()
            self.teachers.append((teacher, torch.compile(teacher) if arguments.compile else teacher))
        decayed = [p for p in self.model.parameters() if p.dim() > 1]
        plain = [p for p in self.model.parameters() if p.dim() <= 1]
        groups = [{"params": decayed, "weight_decay": config["weight_decay"]}, {"params": plain, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), fused=device.type == "cuda")
        self.targets = torch.empty(0)
        self.step, self.spent = 0, 0.0
        if (state := arguments.out / "state.pt").exists():
            self.resume(state)

    def learning_rate(self) -> float:
        """Warm-up, a plateau, then down to nothing in a straight line."""
        config, left = self.config, 1 - self.step / self.arguments.steps
        return float(config["learning_rate"] * min(1, (self.step + 1) / config["warmup"], left / config["decay"]))

    def loop(self, batches: Iterator[Batch]) -> None:
        log = (self.arguments.out / "log.jsonl").open("a")
        sums: dict[str, Tensor] = {}
        began, before = time.monotonic(), self.spent
        while self.step < self.arguments.steps and time.monotonic() - began < 60 * self.arguments.stop_after:
            rate = self.learning_rate()
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            losses = self.losses(next(batches))
            self.optimizer.zero_grad(set_to_none=True)
            losses["total"].backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config["clip"])
            self.optimizer.step()
            self.average()
            self.step += 1
            for name, value in losses.items():
                sums[name] = sums.get(name, torch.zeros((), device=self.device)) + value.detach()
            if self.step % 100 == 0 or self.step <= 2:
                means = {
                    name: round(float(value) / (100 if self.step % 100 == 0 else 1), 4) for name, value in sums.items()
                }
                sums = {}
                entry = {"step": self.step, "seconds": round(self.spent, 1), "rate": rate, **means}
                log.write(json.dumps(entry) + "\n")
                log.flush()
                print(entry, flush=True)
            self.spent = before + time.monotonic() - began
            if self.step % self.arguments.save_every == 0:
                self.save()
        log.close()

    @torch.no_grad()
    def average(self) -> None:
        keep = min(self.config["average"], (self.step + 1) / (self.step + 10))
        ours, theirs = list(self.averaged.parameters()), list(self.model.parameters())
        torch._foreach_lerp_(ours, theirs, 1 - keep)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """The six losses, their weighted sum as `total`, and the share of right answers as `accuracy`."""
        device, weight = self.device, self.config["loss"]

        def put(array: np.ndarray) -> Tensor:
            value = torch.from_numpy(array)
            return value.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else value

        tokens, positions, parts, segments = map(put, (batch.tokens, batch.positions, batch.parts, batch.segments))
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            hidden = self.forward(tokens, positions, parts, segments)
            slots, yes = put(batch.slots), put(batch.yes)
            at_slots = self.model.logits(hidden[slots[:, 0], slots[:, 1]]).float()
            masked = put(batch.masked[: self.config["diffusion_positions"]])
            at_masks = self.model.logits(hidden[masked[:, 0], masked[:, 1]]).float()
            same = put(batch.same)
            blended = self.to_learn(yes, slots, same, (tokens, positions, parts, segments))
            yes = torch.where(put(batch.final), yes, blended)
        answers = at_slots[:, [self.words.yes, self.words.no]]
        logs = answers - at_slots.logsumexp(dim=-1, keepdim=True)
        asked = max(1, len(slots))  # a small batch may hold no question at all
        found = {"slot": -(yes * logs[:, 0] + (1 - yes) * logs[:, 1]).sum() / asked}
        odds = answers[:, 0] - answers[:, 1]
        groups = put(batch.groups)
        scores = torch.where(groups >= 0, odds[groups.clamp(min=0)], float("-inf"))
        found["list"] = (scores.logsumexp(dim=1) - scores[:, 0]).mean() if len(groups) else odds.sum() * 0
        # the mean of their distance, which a pair far apart does not rule
        apart = functional.smooth_l1_loss(odds[same[:, 0]], odds[same[:, 1]], reduction="sum")
        found["same"] = apart / max(1, len(same))
        twins = odds[put(batch.twins)]
        found["twins"] = functional.softplus(MARGIN - twins[:, 0] + twins[:, 1]).sum() / max(1, len(twins))
        found["diffusion"] = self.diffusion(at_masks, masked[:, 2], put(batch.weights)[: len(masked)], batch)
        wanted = put(batch.embeddings)
        given = pooled(hidden, parts, segments, int(batch.parts.max()))[wanted[:, 0], wanted[:, 1] - 1]
        found["embedding"] = (1 - (given * self.targets[wanted[:, 2]].float()).sum(dim=1)).sum() / max(1, len(wanted))
        found["total"] = sum((weight[name] * value for name, value in found.items()), torch.zeros((), device=device))
        found["accuracy"] = ((odds > 0) == (yes > 0.5)).float().sum() / asked
        return found

    @torch.no_grad()
    def to_learn(self, yes: Tensor, slots: Tensor, same: Tensor, prompts: tuple[Tensor, ...]) -> Tensor:
        """The answers to learn, with the mean of the teachers' log-odds in them if there are any.

        Of a question in two wordings it is the mean over both, too.
        """
        if not self.teachers:
            return yes
        odds = torch.zeros_like(yes)
        for teacher, ask in self.teachers:
            logits = teacher.logits(ask(*prompts)[slots[:, 0], slots[:, 1]]).float()
            odds += (logits[:, self.words.yes] - logits[:, self.words.no]) / len(self.teachers)
        odds[same] = odds[same].mean(dim=1, keepdim=True).expand(-1, 2)
        weigh = self.config["teacher"]
        return blend(yes, odds * weigh["sharpen"], weigh["share"], weigh["known"])

    def diffusion(self, logits: Tensor, tokens: Tensor, weights: Tensor, batch: Batch) -> Tensor:
        """Nats per token: the sum of CE / t over the masked tokens, by the number of tokens that could be masked."""
        if not len(tokens):
            return logits.sum() * 0
        kept = len(tokens) / max(1, len(batch.masked))
        return (functional.cross_entropy(logits, tokens, reduction="none") * weights).sum() / (kept * batch.maskable)

    def save(self) -> None:
        """Everything needed to go on; written beside and moved, so that a kill leaves the old one."""
        path = self.arguments.out / "state.pt"
        state = {
            "model": self.model.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "spent": self.spent,
        }
        torch.save(state, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)

    def resume(self, path: Path) -> None:
        state = torch.load(path, map_location=self.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.averaged.load_state_dict(state["averaged"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.spent = state["step"], state["spent"]
        print(f"going on after step {self.step}", flush=True)

    def finish(self) -> None:
        for name, model in (("weights", self.averaged), ("last", self.model)):
            tensors = {key: value.half().contiguous().cpu() for key, value in model.state_dict().items()}
            if not all(math.isfinite(float(value.abs().max())) for value in tensors.values()):
                raise ValueError(f"{name}: a weight is not finite.")
            save_file(tensors, self.arguments.out / f"{name}.safetensors")
        self.save()
        print(f"{self.step} steps in {self.spent:.0f} s", flush=True)


if __name__ == "__main__":
    main()
