"""SetScore on the CPU beside what a user would pick instead, measured in one run.

    python benchmarks/cpu.py [--seconds 4] [--json FILE]

Compared, on the same synthetic documents and labels, with all cores:

    shared     setscore-mini, the document read once for all labels (its native mode)
    exact      setscore-mini, the document read once per label, as in the paper
    pipeline   transformers' zero-shot-classification pipeline in fp32 torch, on a random-weight NLI model of the same
               size (BERT shape, 6 layers, width 384), with the faster of batch sizes 1 and 16

Read the ratios: absolute numbers belong to the machine. Timings of one cell alternate between the contestants, so that
a noisy neighbour hits all of them. The first document of each is not timed.
"""

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from setscore import SetScoreClassifier
from setscore.backbones.mini import default_folder

LABELS, TOKENS = (5, 20, 100), (64, 256)
PIPELINE_BATCHES = (1, 16)
# Words of one token each, so that a document of n words has n tokens.
WORDS = [
    "market", "river", "music", "game", "health", "police", "school", "science", "water", "engine", "garden",
    "letter", "winter", "city", "bridge", "story", "doctor", "paper", "north", "field", "road", "summer",
    "train", "island", "history", "king", "church", "war", "ship", "office", "price", "family", "money",
    "number",
]  # fmt: skip

Contestant = Callable[[list[str], list[str]], object]


def documents(tokens: int, count: int) -> list[str]:
    return [" ".join(random.choices(WORDS, k=tokens)) for _ in range(count)]


def labels(count: int) -> list[str]:
    """Distinct labels of two words, as people write them."""
    names = [f"{a} {b}" for a in WORDS for b in WORDS if a != b]
    return random.Random(7).sample(names, count)


def setscore(attention: str) -> Contestant:
    return lambda texts, names: SetScoreClassifier(names, attention=attention).predict_proba(texts)


def pipeline(batch_size: int) -> Contestant:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(os.cpu_count() or 1)
    torch.manual_seed(0)
    answers = {"contradiction": 0, "neutral": 1, "entailment": 2}
    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, label2id=answers,
        id2label={number: name for name, number in answers.items()},
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(default_folder() / "tokenizer.json"), model_max_length=512, pad_token="[PAD]",
        cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]", mask_token="[MASK]",
    )  # fmt: skip
    zero_shot = transformers.pipeline("zero-shot-classification", model=model, tokenizer=tokenizer, device="cpu")
    return lambda texts, names: zero_shot(texts, names, multi_label=True, batch_size=batch_size)


CONTESTANTS: dict[str, Callable[[], Contestant]] = {
    "shared": lambda: setscore("shared"),
    "exact": lambda: setscore("exact"),
    **{f"pipeline/{size}": lambda size=size: pipeline(size) for size in PIPELINE_BATCHES},
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
                start = time.perf_counter()
                run(texts, names)
                took = time.perf_counter() - start
                spent[name] += took
                done[name] += len(texts)
                batch[name] = max(1, min(64, round(len(texts) * seconds / 6 / took)))  # about six calls in all
    return {name: done[name] / spent[name] for name in contestants}


def latency(run: Contestant, tokens: int, names: list[str], repeats: int) -> float:
    """Median seconds for one document alone."""
    times = []
    for text in documents(tokens, repeats + 1):
        start = time.perf_counter()
        run([text], names)
        times.append(time.perf_counter() - start)
    return sorted(times[1:])[repeats // 2]


def peak_memory(name: str) -> int:
    """Peak memory in bytes of a fresh process that scores 16 documents of 256 tokens over 20 labels."""
    command = [sys.executable, __file__, "--memory-of", name]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def memory_of(name: str) -> None:
    CONTESTANTS[name]()(documents(256, 16), labels(20))
    status = Path("/proc/self/status")
    if status.exists():  # Linux: getrusage would count the parent's memory before exec as well
        print(int(re.search(r"VmHWM:\s+(\d+)", status.read_text()).group(1)) * 1024)
    else:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def measure(seconds: float) -> dict[str, object]:
    contestants = {name: make() for name, make in CONTESTANTS.items()}
    cells = []
    print("documents per second\n")
    print("| labels | tokens | shared | exact | pipeline | shared / pipeline | shared / exact |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for count in LABELS:
        for tokens in TOKENS:
            found = rates(contestants, tokens, labels(count), seconds)
            best = max(found[f"pipeline/{size}"] for size in PIPELINE_BATCHES)
            cell = {"labels": count, "tokens": tokens, "shared": found["shared"], "exact": found["exact"]}
            cell |= {
                "pipeline": best,
                "ratio": found["shared"] / best,
                "shared_to_exact": found["shared"] / found["exact"],
            }
            cells.append(cell)
            rate = f"{found['shared']:.1f} | {found['exact']:.2f} | {best:.2f}"
            print(f"| {count} | {tokens} | {rate} | {cell['ratio']:.1f} | {cell['shared_to_exact']:.1f} |", flush=True)

    print("\none document of 256 tokens, 20 labels\n")
    print("| | latency, ms | against shared | peak memory of a process, MB |")
    print("|---|---:|---:|---:|")
    single = {}
    for name, run in contestants.items():
        took = latency(run, 256, labels(20), 9 if name == "shared" else 3)
        single[name] = {"latency_s": took, "peak_bytes": peak_memory(name)}
        ratio = took / single["shared"]["latency_s"]
        print(f"| {name} | {took * 1e3:.0f} | {ratio:.1f} | {single[name]['peak_bytes'] / 1e6:.0f} |", flush=True)
    return {"cores": os.cpu_count(), "rates": cells, "single": single}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each contestant in each cell")
    parser.add_argument("--json", type=Path, help="write the numbers to this file too")
    parser.add_argument("--memory-of", choices=list(CONTESTANTS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    random.seed(0)
    if arguments.memory_of:
        memory_of(arguments.memory_of)
        return
    result = measure(arguments.seconds)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
