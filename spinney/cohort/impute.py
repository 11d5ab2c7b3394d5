"""Missing values filled where a study asks for it: from the patient's earlier row, then with the site's median.

Medians come from ripe rows of training patients, so that no test row has a say in them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from spinney.study.study import Study


def forward_fill_then_median(
    table: pa.Table, study: Study, trains: NDArray[np.bool_]
) -> tuple[pa.Table, dict[str, tuple[float, float]]]:
    """The filled table, and by feature the shares of rows filled forward and with the median."""
    frame: pd.DataFrame = table.to_pandas()
    rates: dict[str, tuple[float, float]] = {}
    in_order = frame.sort_values(["patient", "index_time"], kind="stable").index
    for feature in study.features:
        if feature.name not in frame.columns:
            continue
        before = frame[feature.name]
        forward = before.loc[in_order].groupby(frame["patient"].loc[in_order]).ffill().reindex(frame.index)
        filled = forward
        if feature.kind != "categorical":
            median = forward[trains].median()
            if not np.isnan(median):
                filled = forward.fillna(round(median) if feature.kind == "binary" else median)
        missing = before.isna()
        rates[feature.name] = (
            float((missing & forward.notna()).mean()) if len(frame) else 0.0,
            float((forward.isna() & filled.notna()).mean()) if len(frame) else 0.0,
        )
        place = table.column_names.index(feature.name)
        values = pa.array(filled, type=table.schema.field(feature.name).type, from_pandas=True)
        table = table.set_column(place, feature.name, values)
    return table, rates
