"""One table of codes by a method of another tool: dpmm's MST or AIM. `bench/scale.py --peers` runs it.

    python bench/peers.py mst TABLE.parquet OUT.parquet

It needs a Python of its own (3.10 or 3.11), since the tool pins its libraries: `pip install dpmm "pyarrow<16"`. All
values are codes from 0, and the domains are known, as in PrivBench's runs on the same tables: nothing is spent on
finding or binning them. It works in one process, so that all CPU-seconds are seen. Other settings are the tool's own.
"""

import sys

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline

METHODS = {"mst": MSTPipeline, "aim": AIMPipeline}


def main() -> None:
    method, source, target = sys.argv[1:]
    rows = pd.read_parquet(source)
    pipeline = METHODS[method](epsilon=3.2, delta=1e-9, disable_processing=True, n_jobs=1)
    pipeline.fit(rows, domain={column: int(rows[column].max()) + 1 for column in rows}, random_state=1)
    pipeline.generate(n_records=len(rows), random_state=1).to_parquet(target)


if __name__ == "__main__":
    main()
