"""Loading needs host memory for about one shard, however many there are: measured in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import checkpoints
import pytest
import torch
from safetensors.torch import save_file

from setscore.backbones.native.architecture import read_architecture
from setscore.backbones.native.names import NAMES, expected

LAYERS, WIDTH, INNER = 8, 512, 1536
CONFIG = checkpoints.LLADA_CONFIG | {
    "d_model": WIDTH, "n_layers": LAYERS, "n_heads": 8, "n_kv_heads": 8, "mlp_hidden_size": INNER,
}  # fmt: skip

# A complete parameter leaves for the device; here it is dropped, so what stays is what the host would need.
LOADING = """
import sys
from pathlib import Path

import torch

from setscore.backbones.native.architecture import read_architecture
from setscore.backbones.native.names import NAMES
from setscore.backbones.native.weights import load_weights, weight_files
from setscore.backbones.config import read_config


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def leave(model, parameter):
    seen.append(resident())
    home, _, name = parameter.rpartition(".")
    setattr(model.get_submodule(home), name, torch.nn.Parameter(torch.empty(0), requires_grad=False))


folder = Path(sys.argv[1])
files, architecture = weight_files(folder), read_architecture(read_config(folder))
torch.ones(64, 64) @ torch.ones(64, 64)
for finish in (leave, leave, lambda *_: seen.append(resident())):  # the first one also imports what torch puts off
    base, seen = resident(), []
    load_weights(files, architecture, NAMES["llada"], device="cpu", dtype=torch.float32, finish=finish)
    print(max(seen) - base, len(seen))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One shard a layer, as long checkpoints are cut; the rest goes with the first."""
    folder = tmp_path_factory.mktemp("shards")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    shards = [{} for _ in range(LAYERS)]
    weight_map = {}
    for name, (piece, *_) in expected(NAMES["llada"], read_architecture(CONFIG)).items():
        number = int(name.split(".")[3]) if ".blocks." in name else 0
        shards[number][name] = torch.full(piece.shape, 0.5)
        weight_map[name] = f"model-{number + 1:05}-of-{LAYERS:05}.safetensors"
    for number, shard in enumerate(shards, start=1):
        save_file(shard, folder / f"model-{number:05}-of-{LAYERS:05}.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="reads Linux's account of memory")
def test_peak_host_memory_is_near_one_shard(folder):
    sizes = [path.stat().st_size for path in folder.glob("*.safetensors")]
    largest = 2 * INNER * WIDTH * 4  # gate and up as one matrix
    allowed = max(sizes) + largest + 12e6
    assert allowed < sum(sizes) / 2.5  # there is something to save
    # What is freed goes back at once, so that live memory is measured and not what malloc keeps for later.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", LOADING, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    _, _, most, parameters, kept, _ = map(int, done.stdout.split())
    assert parameters == 3 + 7 * LAYERS
    assert most < allowed
    assert sum(sizes) - 12e6 < kept < sum(sizes) + allowed  # what stays on the host is the model, once
