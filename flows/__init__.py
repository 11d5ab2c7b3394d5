"""The flows of a house. Prefect and what they use tell their makers nothing, also where nobody has said so."""

import gc
import os

os.environ.setdefault("DO_NOT_TRACK", "true")  # before Prefect is imported: it tells of its first use
gc.set_threshold(10_000, 10, 10)  # or imports, whose objects stay, are looked through for garbage every 700 of them
