"""Documents per second on a GPU: the paper's way, exact and shared attention, beside the card's own matmul peak.

    python benchmarks/gpu.py [--seconds 4] [--no-compile] [--only check,llada,mixed,fp8,others] [--json FILE]
    python benchmarks/gpu.py --smoke          # tiny shapes on the CPU: does it run?

Full-size shapes with random bf16 weights; the prompts are random tokens, a question has 20 of them.

    naive    padded batches of 64, every layer at every position, logits of the whole vocabulary at every position
    exact    our transformer, once per document and label: no padding, last layer and head at the slot only
    shared   our transformer, the document once for all labels

"% of peak" counts the multiplications that a way really does, against the fastest large bf16 product measured here.
"""

import argparse
import copy
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch
from full_size import architecture, random_model
from ways import NAIVE_BATCH, QUESTION, Done, documents, naive, ours

from setscore.backbones.native import attention, operations
from setscore.backbones.native.experts import Experts
from setscore.backbones.native.model import Transformer
from setscore.backbones.native.quantise import Quantiser

CELLS = ((96, 28), (512, 20), (512, 54), (600, 100))  # tokens of a document, labels
# Ten equally likely lengths: percentiles 5, 15, ... 95 of the bodies of Reuters-21578, in WordPiece tokens.
REUTERS = (38, 68, 86, 103, 118, 132, 157, 212, 291, 525)
BLOCKS = {"llada2-mini": 32}
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

    def __init__(self, *, smoke: bool, seconds: float, compiled: bool) -> None:
        self.smoke, self.seconds, self.compiled = smoke, seconds, compiled
        self.device = "cpu" if smoke else "cuda"
        self.batch_tokens = 256 if smoke else 16384
        self.cells = ((12, 3), (24, 2)) if smoke else CELLS
        self.results: dict[str, dict[str, float]] = {}

    def model(self, name: str) -> Transformer:
        model = random_model(architecture(name, small=self.smoke), device=self.device)
        model.use(operations.compiled() if self.compiled else operations.PLAIN)
        return model

    def number(self, length: int, labels: int, *, shared: bool) -> int:
        """So many documents fill about three batches."""
        tokens = length + labels * QUESTION if shared else labels * (length + QUESTION)
        return max(1, round(3 * self.batch_tokens / tokens))

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
            seconds, calls = self.loop(partial(torch.mm, a, b), 0.05 if self.smoke else 1.0)
            best = max(best, 2 * rows * inner * columns * calls / seconds)
        return best

    def loop(self, work: Callable[[], object], seconds: float) -> tuple[float, int]:
        """Seconds and number of calls, after one that is not counted."""
        work()
        self.wait()
        begun, calls = time.perf_counter(), 0
        while calls == 0 or time.perf_counter() - begun < seconds:
            work()
            calls += 1
            self.wait()
        return time.perf_counter() - begun, calls

    def time(self, work: Callable[[], Done], documents: float) -> Timing:
        """`work` scores `documents` documents."""
        if self.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        done: list[Done] = []
        seconds, calls = self.loop(lambda: done.append(work()), self.seconds)
        peak = torch.cuda.max_memory_allocated() if self.device == "cuda" else 0
        return Timing(seconds, documents * calls, done[-1].tokens * calls, done[-1].flops * calls, peak)


def row(cells: list[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def header(*names: str) -> None:
    print(f"\n{row(list(names))}")
    print(row(["---"] + ["---:"] * (len(names) - 1)))


def main_table(bench: Bench, peak: float) -> None:
    """LLaDA-8B: three ways in every cell."""
    model = bench.model("llada-8b")
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    header(
        "LLaDA-8B: tokens, labels", "way", "documents/s", "tokens/s", "% of peak", "peak memory GB", "over weights GB"
    )
    for length, labels in bench.cells:
        for way in ("naive", "exact", "shared"):
            number = bench.number(length, labels, shared=way == "shared")
            asked = documents([length] * number, labels, model.architecture.vocabulary)
            if way == "naive":
                one = documents([length], NAIVE_BATCH, model.architecture.vocabulary)
                found = bench.time(partial(naive, model, one), NAIVE_BATCH / labels)
            else:
                found = bench.time(partial(ours, model, asked, bench.batch_tokens, shared=way == "shared"), number)
            bench.results[f"{length}x{labels} {way}"] = {"rate": found.rate, "peak": found.flops / found.seconds / peak}
            print(row([f"{length}, {labels}", way, f"{found.rate:.2f}", f"{found.tokens / found.seconds:.0f}",
                       f"{100 * found.flops / found.seconds / peak:.0f}%", f"{found.peak_bytes / 1e9:.1f}",
                       f"{(found.peak_bytes - weights) / 1e9:.1f}"]), flush=True)  # fmt: skip


def mixed_table(bench: Bench) -> None:
    """A real distribution of lengths against one length, at the same number of tokens."""
    model, labels = bench.model("llada-8b"), 3 if bench.smoke else 20
    lengths = [12, 30, 7] if bench.smoke else list(REUTERS) * 4
    mean = sum(lengths) // len(lengths)
    header("lengths", "way", "tokens/s", "waste")
    for way, shared in (("exact", False), ("shared", True)):
        speed = []
        for these in ([mean] * len(lengths), lengths):
            asked = documents(these, labels, model.architecture.vocabulary)
            found = bench.time(partial(ours, model, asked, bench.batch_tokens, shared=shared), len(these))
            speed.append(found.flops / found.seconds)
            waste = "" if len(speed) == 1 else f"{100 * (1 - speed[1] / speed[0]):.1f}%"
            kind = "all of the mean length" if len(speed) == 1 else "as in Reuters"
            print(row([kind, way, f"{found.tokens / found.seconds:.0f}", waste]), flush=True)
        bench.results[f"mixed {way}"] = {"waste": 1 - speed[1] / speed[0]}
    batches = [sorted(lengths)[i : i + NAIVE_BATCH] for i in range(0, len(lengths), NAIVE_BATCH)]
    padded = sum(max(b) * len(b) for b in batches)
    waste = 100 * (1 - sum(lengths) / padded)
    print(f"\nPadded to the longest of a batch of {NAIVE_BATCH} they would waste {waste:.0f}%.")


def fp8_table(bench: Bench) -> None:
    """fp8 against bf16, exact attention."""
    model = bench.model("llada-8b")
    length, labels = bench.cells[1]
    number = bench.number(length, labels, shared=False)
    asked = documents([length] * number, labels, model.architecture.vocabulary)
    header("weights", "documents/s", "times bf16", "peak memory GB")
    rates: list[float] = []
    for dtype in ("bf16", "fp8"):
        if dtype == "fp8":
            quantise = Quantiser("fp8", torch.device(bench.device))
            for name in [name for name, _ in model.named_parameters() if name.startswith("layers.")]:
                quantise(model, name)
            model.use(operations.compiled() if bench.compiled else operations.PLAIN)
        found = bench.time(partial(ours, model, asked, bench.batch_tokens, shared=False), number)
        rates.append(found.rate)
        print(
            row([dtype, f"{found.rate:.2f}", f"{found.rate / rates[0]:.2f}", f"{found.peak_bytes / 1e9:.1f}"]),
            flush=True,
        )
    bench.results["fp8"] = {"speedup": rates[1] / rates[0]}


def other_table(bench: Bench, peak: float) -> None:
    """Dream and LLaDA2-mini."""
    header("shape", "tokens, labels", "way", "documents/s", "% of peak", "peak memory GB")
    for name in ("dream-7b", "llada2-mini"):
        model = bench.model(name)
        for length, labels in bench.cells[1:3]:
            for way, shared in (("exact", False), ("shared", True)):
                number = bench.number(length, labels, shared=shared)
                asked = documents([length] * number, labels, model.architecture.vocabulary)
                block = BLOCKS.get(name, 0)
                work = partial(ours, model, asked, bench.batch_tokens, shared=shared, block=block)
                found = bench.time(work, number)
                share = found.flops / found.seconds / peak
                bench.results[f"{name} {length}x{labels} {way}"] = {"rate": found.rate, "peak": share}
                print(row([name, f"{length}, {labels}", way, f"{found.rate:.2f}", f"{100 * share:.0f}%",
                           f"{found.peak_bytes / 1e9:.1f}"]), flush=True)  # fmt: skip
        del model
        if bench.device == "cuda":
            torch.cuda.empty_cache()


def check(bench: Bench) -> None:
    """Before anything is timed: the kernels of this card and plain ones, bf16 on small shapes, both against fp32."""
    header("largest difference from fp32", "way", "kernels", "plain ones", "largest log-odds")
    plain = [patch.object(attention, "flash_fits", lambda _: False), patch.object(Experts, "work", Experts.one_by_one)]
    for name in ("llada-8b", "dream-7b", "llada2-mini"):
        model = random_model(architecture(name, small=True), device=bench.device)
        for parameter in model.parameters():
            parameter.mul_(10 if parameter.ndim > 1 else 1)  # else there would be nothing to tell apart
        asked, block = documents([40, 33], 5, model.architecture.vocabulary), BLOCKS.get(name, 0)
        exactly = copy.deepcopy(model).float()
        for way, shared in (("exact", False), ("shared", True)):
            fast = ours(model, asked, 256, shared=shared, block=block).values
            with plain[0], plain[1]:
                slow = ours(model, asked, 256, shared=shared, block=block).values
                right = ours(exactly, asked, 256, shared=shared, block=block).values
            off, plain_off = (max(abs(a - b) for a, b in zip(x, right, strict=True)) for x in (fast, slow))
            bench.results[f"check {name} {way}"] = {"kernels": off, "plain": plain_off}
            print(row([name, way, f"{off:.4f}", f"{plain_off:.4f}", f"{max(map(abs, right)):.2f}"]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="tiny shapes on the CPU")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each timing")
    parser.add_argument("--no-compile", action="store_true", help="leave element-wise work unfused")
    parser.add_argument("--only", default="check,llada,mixed,fp8,others", help="tables to make")
    parser.add_argument("--json", type=Path, help="write the numbers to this file too")
    arguments = parser.parse_args()
    if not arguments.smoke and not torch.cuda.is_available():
        parser.error("there is no CUDA GPU; --smoke runs tiny shapes on the CPU.")
    seconds = 0.0 if arguments.smoke else arguments.seconds
    compiled = not (arguments.no_compile or arguments.smoke)
    bench = Bench(smoke=arguments.smoke, seconds=seconds, compiled=compiled)
    peak = bench.peak()
    where = "CPU" if arguments.smoke else torch.cuda.get_device_name()
    print(f"{where}, torch {torch.__version__}, {'compiled' if compiled else 'plain'} element-wise operations;"
          f" measured bf16 peak {peak / 1e12:.0f} TFLOP/s.")  # fmt: skip
    tables = {
        "check": lambda: check(bench),
        "llada": lambda: main_table(bench, peak),
        "mixed": lambda: mixed_table(bench),
        "fp8": lambda: fp8_table(bench),
        "others": lambda: other_table(bench, peak),
    }
    for name in arguments.only.split(","):
        tables[name]()
        if not arguments.smoke:
            torch.cuda.empty_cache()
    if arguments.json:
        arguments.json.write_text(json.dumps({"peak": peak, "results": bench.results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
