"""SetScore on the CPU beside what a user would pick instead, measured in one run.

    python benchmarks/speed/cpu.py [--backbone setscore-mini] [--seconds 4] [--json FILE]
    python benchmarks/speed/cpu.py --smoke                  # one small cell: does it run?

Compared, on the same synthetic documents and labels, with all cores:

    shared     the embedded model, the document read once for all labels (its native mode)
    exact      the embedded model, the document read once per label, as in the paper
    pipeline   transformers' zero-shot-classification pipeline in fp32 torch, on a random-weight NLI model of the same
               layers and width (BERT shape, 12 or 6 layers of 384), with the faster of batch sizes 1 and 16

Read the ratios: absolute numbers belong to the machine. Timings of one cell alternate between the contestants, so that
a noisy neighbour hits all of them. The first document of each is not timed.
"""

import argparse
import os
import random
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common import header, measured, options, row, timed, write_json
from setscore import SetScoreClassifier
from setscore.backbones.mini import default_folder

PIPELINE_BATCHES = (1, 16)
LAYERS = {"setscore-small": 12, "setscore-mini": 6}  # of each embedded model, and so of the pipeline's
# Words of one token each, so that a document of n words has n tokens.
WORDS = [
    "market", "river", "music", "game", "health", "police", "school", "science", "water", "engine", "garden",
    "letter", "winter", "city", "bridge", "story", "doctor", "paper", "north", "field", "road", "summer",
    "train", "island", "history", "king", "church", "war", "ship", "office", "price", "family", "money",
    "number",
]  # fmt: skip

Contestant = Callable[[list[str], list[str]], object]


@dataclass(frozen=True)
class Sizes:
    """What is timed: every number of labels with every number of tokens, then one document alone."""

    labels: tuple[int, ...] = (5, 20, 100)
    tokens: tuple[int, ...] = (64, 256)
    alone: tuple[int, int] = (20, 256)  # labels, tokens
    memory: tuple[str, ...] | None = None  # whose memory is measured; None: everybody's


SMOKE = Sizes(labels=(2,), tokens=(8,), alone=(2, 8), memory=("shared",))


@dataclass(frozen=True)
class Cell:
    """Documents per second; `pipeline` with the faster of its batch sizes."""

    labels: int
    tokens: int
    shared: float
    exact: float
    pipeline: float
    ratio: float  # shared / pipeline
    shared_to_exact: float

    @classmethod
    def of(cls, count: int, tokens: int, found: dict[str, float]) -> "Cell":
        shared, exact = found["shared"], found["exact"]
        best = max(found[f"pipeline/{size}"] for size in PIPELINE_BATCHES)
        return cls(count, tokens, shared, exact, best, shared / best, shared / exact)


def documents(tokens: int, count: int) -> list[str]:
    return [" ".join(random.choices(WORDS, k=tokens)) for _ in range(count)]


def labels(count: int) -> list[str]:
    """Distinct labels of two words, as people write them."""
    names = [f"{a} {b}" for a in WORDS for b in WORDS if a != b]
    return random.Random(7).sample(names, count)


def setscore(model: str, attention: str) -> Contestant:
    return lambda texts, names: SetScoreClassifier(names, backbone=model, attention=attention).predict_proba(texts)


def pipeline(layers: int, batch_size: int) -> Contestant:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(os.cpu_count() or 1)
    torch.manual_seed(0)
    answers = {"contradiction": 0, "neutral": 1, "entailment": 2}
    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=layers, num_attention_heads=12, intermediate_size=1536, label2id=answers,
        id2label={number: name for name, number in answers.items()},
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(default_folder() / "tokenizer.json"), model_max_length=512, pad_token="[PAD]",
        cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]", mask_token="[MASK]",
    )  # fmt: skip
    zero_shot = transformers.pipeline("zero-shot-classification", model=model, tokenizer=tokenizer, device="cpu")
    return lambda texts, names: zero_shot(texts, names, multi_label=True, batch_size=batch_size)


CONTESTANTS: dict[str, Callable[[str], Contestant]] = {
    "shared": lambda model: setscore(model, "shared"),
    "exact": lambda model: setscore(model, "exact"),
    **{f"pipeline/{size}": lambda model, size=size: pipeline(LAYERS[model], size) for size in PIPELINE_BATCHES},
}


def rates(contestants: dict[str, Contestant], tokens: int, names: list[str], seconds: float) -> dict[str, float]:
    """Documents per second. Every contestant gets `seconds`, in three turns that alternate."""
    for run in contestants.values():
        run(documents(tokens, 1), names)
    spent, done, batch = dict.fromkeys(contestants, 0.0), dict.fromkeys(contestants, 0), dict.fromkeys(contestants, 1)
    for turn in range(1, 4):
        for name, run in contestants.items():
            while spent[name] < seconds * turn / 3:
                texts = documents(tokens, batch[name])
                _, took = timed(lambda run=run, texts=texts: run(texts, names))
                spent[name] += took
                done[name] += len(texts)
                batch[name] = max(1, min(64, round(len(texts) * seconds / 6 / took)))  # about six calls in all
    return {name: done[name] / spent[name] for name in contestants}


def latency(run: Contestant, tokens: int, names: list[str], repeats: int) -> float:
    """Median seconds for one document alone."""
    times = [timed(lambda text=text: run([text], names))[1] for text in documents(tokens, repeats + 1)]
    return sorted(times[1:])[repeats // 2]


def peak_memory(name: str, model: str) -> int:
    """Peak memory in bytes of a fresh process that scores 16 documents of 256 tokens over 20 labels."""
    command = [sys.executable, __file__, "--memory-of", name, "--backbone", model]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def memory_of(name: str, model: str) -> None:
    CONTESTANTS[name](model)(documents(256, 16), labels(20))
    status = Path("/proc/self/status")
    if status.exists():  # Linux: getrusage would count the parent's memory before exec as well
        print(int(re.search(r"VmHWM:\s+(\d+)", status.read_text()).group(1)) * 1024)
    else:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def measure_rates(contestants: dict[str, Contestant], sizes: Sizes, seconds: float) -> list[Cell]:
    print("documents per second\n")
    names = ["labels", "tokens", "shared", "exact", "pipeline", "shared / pipeline", "shared / exact"]
    print(header(names, left=0))
    cells = []
    for count in sizes.labels:
        for tokens in sizes.tokens:
            cell = Cell.of(count, tokens, rates(contestants, tokens, labels(count), seconds))
            cells.append(cell)
            found = [f"{cell.shared:.1f}", f"{cell.exact:.2f}", f"{cell.pipeline:.2f}"]
            print(row([count, tokens, *found, f"{cell.ratio:.1f}", f"{cell.shared_to_exact:.1f}"]), flush=True)
    return cells


def measure_alone(contestants: dict[str, Contestant], sizes: Sizes, model: str) -> dict[str, dict[str, float | None]]:
    count, tokens = sizes.alone
    print(f"\none document of {tokens} tokens, {count} labels\n")
    print(header(["", "latency, ms", "against shared", "peak memory of a process, MB"]))
    single: dict[str, dict[str, float | None]] = {}
    for name, run in contestants.items():
        took = latency(run, tokens, labels(count), 9 if name == "shared" else 3)
        peak = peak_memory(name, model) if sizes.memory is None or name in sizes.memory else None
        single[name] = {"latency_s": took, "peak_bytes": peak}
        ratio = took / single["shared"]["latency_s"]
        print(row([name, f"{took * 1e3:.0f}", f"{ratio:.1f}", "" if peak is None else f"{peak / 1e6:.0f}"]), flush=True)
    return single


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--backbone", choices=list(LAYERS), default="setscore-small")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each contestant in each cell")
    parser.add_argument("--smoke", action="store_true", help="one small cell")
    parser.add_argument("--json", type=Path, help="write the numbers to this file too")
    parser.add_argument("--memory-of", choices=list(CONTESTANTS), help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    model = arguments.backbone
    random.seed(0)
    if arguments.memory_of:
        memory_of(arguments.memory_of, model)
        return
    sizes, seconds = (SMOKE, 0.01) if arguments.smoke else (Sizes(), arguments.seconds)
    contestants = {name: make(model) for name, make in CONTESTANTS.items()}
    cells = measure_rates(contestants, sizes, seconds)
    single = measure_alone(contestants, sizes, model)
    found = {"measured": measured(model), "cores": os.cpu_count(), "rates": list(map(asdict, cells)), "single": single}
    write_json(arguments.json, found)


if __name__ == "__main__":
    main()
