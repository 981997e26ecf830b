"""What all tests share: one thread a process, and which of them `make quick` leaves out."""

import os
from fnmatch import fnmatch
from pathlib import Path

# Tests run side by side, one process a core, on small matrices: threads of linear algebra would only wait for each
# other. Before numpy and torch are loaded, and for the processes that tests start.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from hypothesis import settings  # noqa: E402

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("setscore", deadline=None)
settings.load_profile("setscore")

TESTS = Path(__file__).parent
# What takes many seconds: browsers, Ray, servers, real processes, training, torch, pages, whole benchmarks, and many
# answers of the embedded models. `--quick` does not even load them; a whole run begins with them, so that at its end no
# process waits for one of them.
SLOW = (
    "recipes/test_training.py", "test_documents.py", "test_benchmarks.py", "test_unchanged.py", "test_bad_input.py",
    "test_scorer_results.py", "test_everyday.py", "test_board.py", "test_sklearn_checks.py", "backbones/test_mini.py",
    "test_learning.py", "backbones/test_identity.py", "backbones/test_cached.py", "datasets/test_archive.py",
    "backbones/native*", "backbones/test_masked_*", "backbones/test_shelf.py", "backbones/test_llama_cpp*",
    "baselines*", "recipes*", "batch*", "store/test_processes.py", "scorers/test_reading.py",
    "server/test_serve_command.py", "server/test_page.py", "server/test_clients.py", "server/test_projects.py",
    "server/test_deployment.py", "shortlist/test_shortlist.py", "calibration/test_conformal.py",
    "datasets/test_formats.py", "experiments/test_report.py", "experiments/test_reporting.py",
    "experiments/test_blending.py", "experiments/test_reproduction.py", "experiments/test_baselines.py",
    "experiments/test_diagnosis.py", "cli/test_evaluate.py", "cli/test_exits.py", "cli/test_terminal.py",
    "cli/test_baseline.py", "cli/test_compare.py", "cli/test_diagnose.py", "cli/test_blocks.py",
)  # fmt: skip


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="without what takes many seconds, see tests/conftest.py")


def pytest_ignore_collect(collection_path, config):
    return True if config.getoption("--quick") and is_slow(collection_path) else None


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not is_slow(item.path))


def is_slow(path):
    return any(fnmatch(str(path.relative_to(TESTS)), pattern) for pattern in SLOW)
