"""The flows of a house. Prefect and what they use tell their makers nothing, also where nobody has said so."""

import os

os.environ.setdefault("DO_NOT_TRACK", "true")  # before Prefect is imported: it tells of its first use
