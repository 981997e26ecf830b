"""Documents per second on a GPU: the paper's way, exact and shared attention, beside the card's own matmul peak.

    python benchmarks/gpu.py [--seconds 4] [--no-compile] [--only llada,mixed,fp8,others] [--json FILE]
    python benchmarks/gpu.py --smoke          # tiny shapes on the CPU: does it run?

Full-size shapes with random bf16 weights; the prompts are random tokens, a question has 20 of them.

    naive    padded batches of 64, every layer at every position, logits of the whole vocabulary at every position
    exact    our transformer, once per document and label: no padding, last layer and head at the slot only
    shared   our transformer, the document once for all labels

"% of peak" counts the multiplications that a way really does, against the fastest large bf16 product measured here.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from full_size import architecture, random_model
from torch.nn import functional

from setscore.backbones.native import operations
from setscore.backbones.native.architecture import Architecture
from setscore.backbones.native.layout import Layout, Part, lay_out
from setscore.backbones.native.model import Transformer
from setscore.backbones.native.operations import rms_norm, rotate, rotation, swiglu
from setscore.backbones.native.quantise import Quantiser
from setscore.backbones.native.running import fit_blocks, in_batches
from setscore.backbones.packing import Documents, Question, Row, make_rows

CELLS = ((96, 28), (512, 20), (512, 54), (600, 100))  # tokens of a document, labels
QUESTION = 20
NAIVE_BATCH = 64
# Ten equally likely lengths: percentiles 5, 15, ... 95 of the bodies of Reuters-21578, in WordPiece tokens.
REUTERS = (38, 68, 86, 103, 118, 132, 157, 212, 291, 525)
BLOCKS = {"llada2-mini": 32}


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
        """The fastest bf16 product of large square matrices, in multiply-adds times two per second."""
        size = 256 if self.smoke else 8192
        a, b = (torch.randn(size, size, device=self.device, dtype=torch.bfloat16) for _ in range(2))
        best = 0.0
        for _ in range(3):
            seconds, calls = self.loop(lambda: a @ b, 0.05 if self.smoke else 0.5)
            best = max(best, 2 * size**3 * calls / seconds)
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

    def time(self, work: Callable[[], tuple[int, float]], documents: float) -> Timing:
        """`work` scores `documents` documents and returns tokens and flops."""
        if self.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        done: list[tuple[int, float]] = []
        seconds, calls = self.loop(lambda: done.append(work()), self.seconds)
        peak = torch.cuda.max_memory_allocated() if self.device == "cuda" else 0
        tokens, flops = done[-1]
        return Timing(seconds, documents * calls, tokens * calls, flops * calls, peak)


def documents(lengths: list[int], labels: int, vocabulary: int) -> Documents:
    """Random documents of these lengths, each with every label's question; the slot ends a question."""
    draw = random.Random(7)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(draw.choices(range(vocabulary), k=count))

    asked = [tokens(QUESTION) for _ in range(labels)]
    made: Documents = {}
    for length in lengths:
        number = sum(map(len, made.values()))
        made[tokens(length)] = [Question(number + i, asked[i], (QUESTION - 1,)) for i in range(labels)]
    return made


def ours(bench: Bench, model: Transformer, asked: Documents, *, shared: bool, block: int = 0) -> tuple[int, float]:
    """One pass over the documents as the backbone does it; returns tokens and flops."""
    rows = make_rows(
        fit_blocks(asked, shared=shared, block=block, mask=1), shared=shared, row_tokens=bench.batch_tokens
    )

    @torch.inference_mode()
    def compute(batch: list[Row]) -> Layout:
        layout = lay_out(batch, shared=shared, block=block, shift=0, device=bench.device)
        model.log_odds(model(layout), 5, 6).tolist()
        return layout

    layouts = list(in_batches(rows, bench.batch_tokens, compute))
    return sum(layout.tokens for layout in layouts), sum(flops(model.architecture, layout) for layout in layouts)


@torch.inference_mode()
def naive(model: Transformer, asked: Documents) -> tuple[int, float]:
    """The usual way: padded batches, every position in every layer, the whole vocabulary at every position."""
    a = model.architecture
    texts = [[*document, *question.tokens] for document, questions in asked.items() for question in questions]
    tokens, work = 0, 0.0
    for start in range(0, len(texts), NAIVE_BATCH):
        batch = texts[start : start + NAIVE_BATCH]
        width = max(map(len, batch))
        ids = torch.tensor([[*text, *[0] * (width - len(text))] for text in batch], device=model.embedding.device)
        seen = torch.tensor([[True] * len(t) + [False] * (width - len(t)) for t in batch], device=ids.device)
        mask = None if bool(seen.all()) else seen[:, None, None]
        x = model.embedding[ids]
        cos, sin = (turn[None] for turn in rotation(torch.arange(width, device=ids.device), a.rotary, a.rope_theta))
        for layer in model.layers:
            normed = rms_norm(x, layer.attention_norm, a.norm_eps)
            q = layer.q(normed).unflatten(-1, (-1, a.head_width))
            k, v = layer.kv(normed).unflatten(-1, (2, -1, a.head_width)).unbind(2)
            q, k, v = (y.transpose(1, 2) for y in (rotate(q, cos, sin), rotate(k, cos, sin), v))
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=a.heads != a.key_heads)
            x = x + layer.out(mixed.transpose(1, 2).flatten(2))
            inner = swiglu(layer.mlp.gate_up(rms_norm(x, layer.mlp_norm, a.norm_eps)))
            x = x + layer.mlp.down(inner)
        logits = rms_norm(x, model.norm, a.norm_eps) @ model.head.T
        ends = seen.sum(dim=1) - 1
        (logits[torch.arange(len(batch), device=ids.device), ends].float().log_softmax(-1)[:, [5, 6]]).tolist()
        tokens += ids.numel()
        work += ids.numel() * (a.layers * layer_flops(a) + 2 * a.vocabulary * a.width)
        work += a.layers * 4 * a.heads * a.head_width * len(batch) * width**2
    return tokens, work


def layer_flops(a: Architecture, *, keys: bool = True, rest: bool = True) -> float:
    """Multiply-adds times two of a layer's matrices for one token: its keys and values, and the rest."""
    query, key = a.heads * a.head_width, a.key_heads * a.head_width
    inner = a.mlp_width
    if a.router is not None:  # nearly all layers have experts
        inner = a.router.width * a.router.chosen + a.router.shared_width
    return 2 * a.width * (2 * key * keys + (2 * query + 3 * inner) * rest)


def flops(a: Architecture, layout: Layout) -> float:
    """What our transformer multiplies for a batch."""
    reads = len(layout.reads)
    matrices = layout.tokens * ((a.layers - 1) * layer_flops(a) + layer_flops(a, rest=False))
    matrices += reads * layer_flops(a, keys=False)
    pairs = (a.layers - 1) * sum(map(_pairs, _parts(layout, last=False))) + sum(map(_pairs, _parts(layout, last=True)))
    return matrices + 4 * a.heads * a.head_width * pairs


def _parts(layout: Layout, *, last: bool) -> Iterator[Part]:
    sight = layout.last_sight if last else layout.sight
    yield sight.own
    if sight.context is not None:
        yield sight.context


def _pairs(part: Part) -> int:
    return sum(q * k for q, k in zip(part.query_lengths, part.key_lengths, strict=True))


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
                found = bench.time(partial(ours, bench, model, asked, shared=way == "shared"), number)
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
            found = bench.time(partial(ours, bench, model, asked, shared=shared), len(these))
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
        found = bench.time(partial(ours, bench, model, asked, shared=False), number)
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
                work = partial(ours, bench, model, asked, shared=shared, block=block)
                found = bench.time(work, number)
                share = found.flops / found.seconds / peak
                bench.results[f"{name} {length}x{labels} {way}"] = {"rate": found.rate, "peak": share}
                print(row([name, f"{length}, {labels}", way, f"{found.rate:.2f}", f"{100 * share:.0f}%",
                           f"{found.peak_bytes / 1e9:.1f}"]), flush=True)  # fmt: skip
        del model
        if bench.device == "cuda":
            torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="tiny shapes on the CPU")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each timing")
    parser.add_argument("--no-compile", action="store_true", help="leave element-wise work unfused")
    parser.add_argument("--only", default="llada,mixed,fp8,others", help="tables to make")
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
    tables = {"llada": lambda: main_table(bench, peak), "mixed": lambda: mixed_table(bench),
              "fp8": lambda: fp8_table(bench), "others": lambda: other_table(bench, peak)}  # fmt: skip
    for name in arguments.only.split(","):
        tables[name]()
        if not arguments.smoke:
            torch.cuda.empty_cache()
    if arguments.json:
        arguments.json.write_text(json.dumps({"peak": peak, "results": bench.results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
