"""FHIR-PYrate against a FHIR server: all Observations as flat rows, six columns through FHIRPath.

Run by benchmarks/connectors.py as `python pyrate.py ADDRESS RESULT` with an interpreter that has `fhir-pyrate`.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from fhir_pyrate import Pirate

COLUMNS = [
    ("patient", "subject.reference.replace('Patient/', '')"),
    ("code", "code.coding.code"),
    ("time", "effectiveDateTime"),
    ("recorded", "issued"),
    ("value", "valueQuantity.value"),
    ("unit", "valueQuantity.code"),
]


def main() -> None:
    address, result = sys.argv[1], Path(sys.argv[2])
    pirate = Pirate(auth=None, base_url=address, num_processes=1)
    begin, processor = time.perf_counter(), time.process_time()
    rows = pirate.steal_bundles_to_dataframe(
        "Observation", {"_count": 500, "_sort": "_lastUpdated"}, fhir_paths=COLUMNS
    )
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told = {"observations": len(rows), "seconds": seconds, "processor": processor, "peak_mib": peak}
    result.write_text(json.dumps({**told, "rows": len(rows)}))


if __name__ == "__main__":
    main()
