"""What all tests share."""

import os

# Tests run side by side, one process a core, on small matrices: threads of linear algebra would only wait for each
# other. Before numpy and torch are loaded, and for the processes that tests start.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from hypothesis import settings  # noqa: E402

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("setscore", deadline=None)
settings.load_profile("setscore")
