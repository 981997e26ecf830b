"""Documents per second on a GPU: the paper's way, exact and shared attention, beside the card's own matmul peak.

    python benchmarks/speed/gpu.py --seconds 2 --out docs/results/gpu.md    # the whole page; about three minutes
    python benchmarks/speed/gpu.py [--no-compile] [--only check,ways,mixed,fp8] [--json FILE]
    python benchmarks/speed/gpu.py --smoke                          # tiny shapes on the CPU: does it run?

Full-size shapes with random bf16 weights; the prompts are random tokens, a question has 20 of them. The page goes to
standard output or --out when everything is measured, each number to standard error as soon as it is.
"""

import argparse
import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import options, repeat, tell, write_json
from benchmarks.pages.gpu_page import Check, Fp8, Measured, Mixed, Page, Where
from benchmarks.speed.full_size import architecture, quantised, random_model
from benchmarks.speed.ways import NAIVE_BATCH, QUESTION, Done, documents, naive, ours
from setscore.backbones.devices import used_bytes
from setscore.backbones.native import attention, operations
from setscore.backbones.native.experts import Experts
from setscore.backbones.native.memory import pass_tokens
from setscore.backbones.native.model import Transformer

CELLS = ((96, 28), (512, 20), (512, 54), (600, 100))  # tokens of a document, labels
SHAPES = {"llada-8b": CELLS, "dream-7b": CELLS[1:3], "llada2-mini": CELLS[1:3]}
SMOKE_CELLS = ((12, 3), (24, 2))
# Ten equally likely lengths: percentiles 5, 15, ... 95 of the bodies of Reuters-21578, in WordPiece tokens.
REUTERS = (38, 68, 86, 103, 118, 132, 157, 212, 291, 525)
BLOCKS = {"llada2-mini": 32}
PARTS = "check,ways,mixed,fp8"
Work = Callable[[], Done]
PEAK_SHAPES = ((8192, 8192, 8192), (16384, 4096, 12288), (16384, 16384, 16384))  # rows, inner, columns


@dataclass(frozen=True)
class Timing:
    """What one way did in one cell."""

    seconds: float
    documents: float
    tokens: int
    flops: float
    peak_bytes: int

    @property
    def rate(self) -> float:
        return self.documents / self.seconds


class Bench:
    """A device, a model, and the settings of a run."""

    def __init__(self, *, smoke: bool, seconds: float, compiled: bool, batch_tokens: int | None) -> None:
        self.smoke, self.seconds, self.compiled = smoke, seconds, compiled
        self.device = "cpu" if smoke else "cuda"
        self.wanted = 256 if smoke else batch_tokens

    def model(self, name: str) -> Transformer:
        if self.device == "cuda":
            torch.cuda.empty_cache()
        model = random_model(architecture(name, small=self.smoke), device=self.device)
        model.use(operations.compiled() if self.compiled else operations.PLAIN)
        return model

    def cells(self, name: str) -> tuple[tuple[int, int], ...]:
        return SMOKE_CELLS if self.smoke else SHAPES[name]

    def batch_tokens(self, model: Transformer) -> int:
        return self.wanted or pass_tokens(model.architecture, torch.device(self.device))

    def number(self, model: Transformer, length: int, labels: int, *, shared: bool) -> int:
        """So many documents fill about three batches."""
        tokens = length + labels * QUESTION if shared else labels * (length + QUESTION)
        return max(1, round(3 * self.batch_tokens(model) / tokens))

    def wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def peak(self) -> float:
        """The fastest bf16 product of large matrices, in multiply-adds times two per second: squares and an MLP's."""
        shapes = ((256, 256, 256),) if self.smoke else PEAK_SHAPES
        best = 0.0
        for rows, inner, columns in shapes:
            a = torch.randn(rows, inner, device=self.device, dtype=torch.bfloat16)
            b = torch.randn(columns, inner, device=self.device, dtype=torch.bfloat16).T
            seconds, calls = repeat(partial(torch.mm, a, b), 0.05 if self.smoke else 1.0, self.wait)
            best = max(best, 2 * rows * inner * columns * calls / seconds)
        return best

    def time(self, work: Work, documents: float) -> Timing:
        """`work` scores `documents` documents."""
        if self.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        done: list[Done] = []
        seconds, calls = repeat(lambda: done.append(work()), self.seconds, self.wait)
        peak = torch.cuda.max_memory_allocated() if self.device == "cuda" else 0
        return Timing(seconds, documents * calls, done[-1].tokens * calls, done[-1].flops * calls, peak)


def measure_ways(bench: Bench, peak: float) -> list[Measured]:
    """Every shape, in its cells, three ways."""
    found = []
    for name in SHAPES:
        model = bench.model(name)
        weights = used_bytes(model)
        for length, labels in bench.cells(name):
            for way in ("naive", "exact", "shared"):
                timing = bench.time(*_way(bench, model, way, (length, labels), BLOCKS.get(name, 0)))
                found.append(
                    Measured(
                        shape=name, length=length, labels=labels, way=way, rate=timing.rate,
                        tokens=timing.tokens / timing.seconds, peak=timing.flops / timing.seconds / peak,
                        memory=timing.peak_bytes / 1e9, over=(timing.peak_bytes - weights) / 1e9,
                    )
                )  # fmt: skip
                tell(found[-1])
        del model
    return found


def _way(bench: Bench, model: Transformer, way: str, cell: tuple[int, int], block: int) -> tuple[Work, float]:
    """The work of one way in one cell, and how many documents it scores."""
    (length, labels), vocabulary = cell, model.architecture.vocabulary
    if way == "naive":
        one = documents([length], NAIVE_BATCH, vocabulary)
        return partial(naive, model, one, block=block), NAIVE_BATCH / labels
    shared = way == "shared"
    number = bench.number(model, length, labels, shared=shared)
    asked = documents([length] * number, labels, vocabulary)
    return partial(ours, model, asked, bench.batch_tokens(model), shared=shared, block=block), number


def measure_mixed(bench: Bench) -> Mixed:
    """A real distribution of lengths against one length, at the same number of tokens."""
    model, labels = bench.model("llada-8b"), 3 if bench.smoke else 20
    lengths = [12, 30, 7] if bench.smoke else list(REUTERS) * 4
    mean = sum(lengths) // len(lengths)
    tokens: dict[str, tuple[float, float]] = {}
    waste = {}
    for way in ("exact", "shared"):
        speed, rates = [], []
        for these in ([mean] * len(lengths), lengths):
            asked = documents(these, labels, model.architecture.vocabulary)
            work = partial(ours, model, asked, bench.batch_tokens(model), shared=way == "shared")
            timing = bench.time(work, len(these))
            speed.append(timing.flops / timing.seconds)
            rates.append(timing.tokens / timing.seconds)
        tokens[way], waste[way] = (rates[0], rates[1]), 1 - speed[1] / speed[0]
        tell("mixed lengths", way, tokens[way], waste[way])
    batches = [sorted(lengths)[i : i + NAIVE_BATCH] for i in range(0, len(lengths), NAIVE_BATCH)]
    padded = sum(max(batch) * len(batch) for batch in batches)
    return Mixed(tokens, waste, padded=1 - sum(lengths) / padded)


def measure_fp8(bench: Bench) -> Fp8:
    """fp8 against bf16, exact attention."""
    model = bench.model("llada-8b")
    length, labels = bench.cells("llada-8b")[1]
    number = bench.number(model, length, labels, shared=False)
    asked = documents([length] * number, labels, model.architecture.vocabulary)
    rates, memory = {}, {}
    for dtype in ("bf16", "fp8"):
        if dtype == "fp8":
            quantised(model, "fp8", device=bench.device).use(
                operations.compiled() if bench.compiled else operations.PLAIN
            )
        timing = bench.time(partial(ours, model, asked, bench.batch_tokens(model), shared=False), number)
        rates[dtype], memory[dtype] = timing.rate, timing.peak_bytes / 1e9
        tell(dtype, rates[dtype], memory[dtype])
    return Fp8(length, labels, rates, memory)


def measure_checks(bench: Bench) -> list[Check]:
    """Before anything is timed: the kernels of this card and plain ones, bf16 on small shapes, both against fp32."""
    found = []
    for name in SHAPES:
        model = random_model(architecture(name, small=True), device=bench.device)
        for parameter in model.parameters():
            parameter.mul_(10 if parameter.ndim > 1 else 1)  # else there would be nothing to tell apart
        asked, block = documents([40, 33], 5, model.architecture.vocabulary), BLOCKS.get(name, 0)
        exactly = copy.deepcopy(model).float()
        for way in ("exact", "shared"):
            score = partial(ours, asked=asked, batch_tokens=256, shared=way == "shared", block=block)
            fast = score(model).values
            with (
                patch.object(attention, "flash_fits", lambda _: False),
                patch.object(Experts, "forward", Experts.one_by_one),
            ):
                slow, right = score(model).values, score(exactly).values
            off, plain = (max(abs(a - b) for a, b in zip(x, right, strict=True)) for x in (fast, slow))
            found.append(Check(name, way, off, plain, max(map(abs, right))))
            tell(found[-1])
    return found


def _command(arguments: argparse.Namespace) -> str:
    """The options that matter for the numbers; the page says that it was written to its own place."""
    told = ["--smoke"] if arguments.smoke else [f"--seconds {arguments.seconds:g}"]
    told += ["--no-compile"] * arguments.no_compile
    told += [f"--batch-tokens {arguments.batch_tokens}"] * bool(arguments.batch_tokens)
    told += [f"--only {arguments.only}"] * (arguments.only != PARTS)
    return " ".join([*told, "--out docs/results/gpu.md"])


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny shapes on the CPU")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each timing")
    parser.add_argument("--no-compile", action="store_true", help="leave element-wise work unfused")
    parser.add_argument("--batch-tokens", type=int, help="tokens in one pass instead of the default")
    parser.add_argument("--only", default=PARTS, help="parts of the page")
    parser.add_argument("--out", type=Path, help="write the page to this file")
    parser.add_argument("--json", type=Path, help="write the numbers to this file too")
    arguments = parser.parse_args(given)
    if not arguments.smoke and not torch.cuda.is_available():
        parser.error("there is no CUDA GPU; --smoke runs tiny shapes on the CPU.")
    seconds = 0.0 if arguments.smoke else arguments.seconds
    compiled = not (arguments.no_compile or arguments.smoke)
    bench = Bench(smoke=arguments.smoke, seconds=seconds, compiled=compiled, batch_tokens=arguments.batch_tokens)
    only = arguments.only.split(",")
    where = Where(
        device="CPU" if arguments.smoke else torch.cuda.get_device_name(), torch=torch.__version__,
        compiled=compiled, peak=bench.peak(), command=_command(arguments),
    )  # fmt: skip
    tell(where)
    page = Page(
        where,
        checks=measure_checks(bench) if "check" in only else [],
        ways=measure_ways(bench, where.peak) if "ways" in only else [],
        mixed=measure_mixed(bench) if "mixed" in only else None,
        fp8=measure_fp8(bench) if "fp8" in only else None,
    )
    if arguments.out:
        arguments.out.write_text(page.markdown(), encoding="utf-8")
    else:
        print(page.markdown(), end="")
    write_json(arguments.json, asdict(page))


if __name__ == "__main__":
    main()
