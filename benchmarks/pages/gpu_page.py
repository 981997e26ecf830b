"""docs/results/gpu.md from the numbers of one run of benchmarks/speed/gpu.py: prose, tables, and what they say."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.common import table

# What was asked for: shares of the card's peak, GB beside the weights, waste by mixed lengths, fp8 against bf16.
PEAK_GOALS = {"exact": 0.75, "shared": 0.70}
MEMORY_GOAL = 4.0
WASTE_GOAL = 0.10
FP8_GOAL = 1.3

NAMES = {"llada-8b": "LLaDA-8B", "dream-7b": "Dream-7B", "llada2-mini": "LLaDA2-mini"}


@dataclass(frozen=True)
class Where:
    """The machine and the settings of a run."""

    device: str
    torch: str
    compiled: bool
    peak: float  # operations per second
    command: str


@dataclass(frozen=True)
class Check:
    """How far scores are from fp32, with the card's kernels and with plain ones."""

    shape: str
    way: str
    kernels: float
    plain: float
    largest: float


@dataclass(frozen=True)
class Measured:
    """One way in one cell: documents and tokens per second, the share of the peak, GB."""

    shape: str
    length: int
    labels: int
    way: str
    rate: float
    tokens: float
    peak: float
    memory: float
    over: float


@dataclass(frozen=True)
class Mixed:
    """Tokens per second of one length and of many, by way; what is lost; what padding would lose."""

    tokens: dict[str, tuple[float, float]]
    waste: dict[str, float]
    padded: float


@dataclass(frozen=True)
class Fp8:
    """Documents per second and GB, by dtype."""

    length: int
    labels: int
    rates: dict[str, float]
    memory: dict[str, float]

    @property
    def speedup(self) -> float:
        return self.rates["fp8"] / self.rates["bf16"]


def share(value: float, digits: int = 0) -> str:
    return f"{100 * value:.{digits}f}%"


def verdict(*, met: bool) -> str:
    return "met" if met else "missed"


INTRODUCTION = """\
# Speed on a GPU

The whole page was written by `python benchmarks/speed/gpu.py {command}`: full-size shapes with random bf16 weights,
prompts of random tokens, a question of 20 tokens. One run, nothing else on the card.

- **naive** is the paper's way: padded batches of 64, every layer at every position, logits of the whole vocabulary at
  every position; experts one after the other;
- **exact** asks one prompt for each document and label, and computes only what the score needs;
- **shared** reads the document once for all labels.

"% of peak" counts the multiplications that a way really does, against the fastest large bf16 product of the same run;
so naive can look busy while it computes padding and logits that nobody reads.

{device}, torch {torch}, {compiled} element-wise operations; measured bf16 peak {peak:.0f} TFLOP/s.
"""
CHECKS = """\
## Right before fast

Largest differences of log-odds from fp32, in bf16 on small shapes with large weights: with the card's kernels and with
plain ones.
"""
WAYS = """\
## Three ways

Goals: exact at {exact} of the peak or more, shared at {shared}, and at most {memory:.0f} GB beside the weights.
"""
MIXED = """\
## Documents of mixed lengths

LLaDA-8B with lengths distributed as in Reuters-21578, against documents that all have their mean length. The goal is a
waste under {goal}. Padded to the longest of a batch of 64 they would waste {padded}.
"""
FP8 = """\
## fp8

LLaDA-8B, {length} tokens and {labels} labels, exact attention. The goal is {goal} times bf16.
"""


@dataclass(frozen=True)
class Page:
    """Everything that was measured; a part that was not is left out of the page."""

    where: Where
    checks: list[Check]
    ways: list[Measured]
    mixed: Mixed | None
    fp8: Fp8 | None

    def markdown(self) -> str:
        parts = [self._introduction(), *self._checks(), *self._ways(), *self._mixed(), *self._fp8()]
        said = self._said()
        if said:
            parts += ["## What it says\n", "\n".join(said) + "\n"]
        return "\n".join(parts)

    def _introduction(self) -> str:
        where = self.where
        return INTRODUCTION.format(
            command=where.command, device=where.device, torch=where.torch,
            compiled="compiled" if where.compiled else "plain", peak=where.peak / 1e12,
        )  # fmt: skip

    def _checks(self) -> list[str]:
        if not self.checks:
            return []
        names = ["shape", "way", "kernels", "plain ones", "largest log-odds"]
        rows = [[NAMES[c.shape], c.way, f"{c.kernels:.4f}", f"{c.plain:.4f}", f"{c.largest:.2f}"] for c in self.checks]
        return [CHECKS, table(names, rows, left=2) + "\n"]

    def _ways(self) -> list[str]:
        if not self.ways:
            return []
        names = ["shape", "tokens, labels", "way", "documents/s", "times naive", "tokens/s", "% of peak", "goal",
                 "memory GB", "over weights GB", "goal"]  # fmt: skip
        rows = [self._way(cell) for cell in self.ways]
        goals = {way: share(goal) for way, goal in PEAK_GOALS.items()}
        return [WAYS.format(memory=MEMORY_GOAL, **goals), table(names, rows, left=3) + "\n"]

    def _way(self, cell: Measured) -> list[object]:
        goal = PEAK_GOALS.get(cell.way)
        return [
            NAMES[cell.shape], f"{cell.length}, {cell.labels}", cell.way, f"{cell.rate:.2f}",
            f"{self._times_naive(cell):.1f}", f"{cell.tokens:.0f}", share(cell.peak),
            "" if goal is None else verdict(met=cell.peak >= goal), f"{cell.memory:.1f}", f"{cell.over:.1f}",
            "" if goal is None else verdict(met=cell.over <= MEMORY_GOAL),
        ]  # fmt: skip

    def _times_naive(self, cell: Measured) -> float:
        place = (cell.shape, cell.length, cell.labels, "naive")
        (naive,) = (other for other in self.ways if (other.shape, other.length, other.labels, other.way) == place)
        return cell.rate / naive.rate

    def _mixed(self) -> list[str]:
        if self.mixed is None:
            return []
        rows = [
            [way, f"{one:.0f}", f"{many:.0f}", share(self.mixed.waste[way], 1),
             verdict(met=self.mixed.waste[way] < WASTE_GOAL)]
            for way, (one, many) in self.mixed.tokens.items()
        ]  # fmt: skip
        names = ["way", "tokens/s at one length", "tokens/s as in Reuters", "waste", "goal"]
        text = MIXED.format(goal=share(WASTE_GOAL), padded=share(self.mixed.padded))
        return [text, table(names, rows) + "\n"]

    def _fp8(self) -> list[str]:
        if self.fp8 is None:
            return []
        fp8 = self.fp8
        rows = [
            [dtype, f"{rate:.2f}", f"{rate / fp8.rates['bf16']:.2f}", f"{fp8.memory[dtype]:.1f}",
             verdict(met=fp8.speedup >= FP8_GOAL) if dtype == "fp8" else ""]
            for dtype, rate in fp8.rates.items()
        ]  # fmt: skip
        text = FP8.format(length=fp8.length, labels=fp8.labels, goal=FP8_GOAL)
        return [text, table(["weights", "documents/s", "times bf16", "memory GB", "goal"], rows) + "\n"]

    def _said(self) -> list[str]:
        """Sentences, every number of which is one of the tables'."""
        said = []
        for shape in dict.fromkeys(cell.shape for cell in self.ways):
            cells = [cell for cell in self.ways if cell.shape == shape]
            shared, exact = ([cell for cell in cells if cell.way == way] for way in ("shared", "exact"))
            gains = [[self._times_naive(cell) for cell in cells] for cells in (shared, exact)]
            said.append(
                f"- {NAMES[shape]}: shared attention scores {_range(gains[0], '.0f')} times as many documents as"
                f" the paper's way, exact {_range(gains[1], '.1f')} times; they reach"
                f" {_range([100 * cell.peak for cell in shared], '.0f')}% and"
                f" {_range([100 * cell.peak for cell in exact], '.0f')}% of the peak and need"
                f" {max(cell.memory for cell in shared + exact):.1f} GB at most."
            )
        if self.mixed is not None:
            said.append(f"- Documents of mixed lengths lose {share(max(self.mixed.waste.values()), 1)} at most.")
        if self.fp8 is not None:
            said.append(f"- fp8 needs {self.fp8.memory['fp8']:.1f} GB and is {self.fp8.speedup:.2f} times as fast.")
        return said


def _range(values: Sequence[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"
