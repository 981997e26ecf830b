"""What a run was made with: versions, machine and commit."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import setscore
from setscore.backbones.host import free_host_bytes

PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "onnxruntime", "tokenizers", "torch", "transformers", "sentence-transformers"),
    *("setfit", "torchao", "pydantic", "pyarrow"),
)


def environment() -> dict[str, Any]:
    """As JSON values. Packages that are not installed are left out."""
    return {
        "setscore": setscore.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "free_memory": free_host_bytes(),
        "gpu": _gpu(),
        "packages": {name: found for name in PACKAGES if (found := _version(name)) is not None},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _gpu() -> str | None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return str(torch.cuda.get_device_name())


def _commit() -> str | None:
    """Of the source tree that this package runs from; None for one that was installed."""
    folder = Path(setscore.__file__).parents[2]
    if not (folder / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
