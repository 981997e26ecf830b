"""The memory and the cores of the machine that runs this process; no torch."""

import os
import sys
from pathlib import Path

THREADS = "SETSCORE_THREADS"  # how many threads a model on the CPU may use, for processes that share a machine


def peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def free_host_bytes() -> int:
    """Memory that can still be had; all that the machine has where it does not tell."""
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        for line in meminfo.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
