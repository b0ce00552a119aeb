"""The command line, the only place that prints: one short process, which keeps what it loads, and takes no product of
matrices."""

import gc
import os

gc.set_threshold(200_000)  # to look for garbage among what stays was a tenth of the time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded, which starts one for each core
