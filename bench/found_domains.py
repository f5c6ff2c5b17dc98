"""What domains that are found with budget cost in quality: raw Adult, 45,222 x 15, SAM-1000.

    python bench/found_domains.py --data DIR [--declared none,texts,all] [--epsilon 3.2] [--delta 1e-9] [--runs 5]

DIR holds adult/ and workloads/. Nothing is declared, or the lists of texts, or all domains, as the data have them; the
rest is found with budget. Figures are medians over seeded runs of method `tree`; noise is that of tests. KLD is 2-way,
on raw values and without fnlwgt. Texts can only be found with a delta.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from adult_table import write_adult
from privbench.evaluation.evaluate import evaluate
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.privacy.noise import TestEntropy
from privbench.schema.domain import Domain, Origin
from privbench.schema.spec import Spec
from privbench.schema.types import Kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--declared", default="none,texts,all")
    parser.add_argument("--epsilon", default="3.2")
    parser.add_argument("--delta", default="1e-9")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        real, without = write_adult(given.data, Path(folder))
        for declared in given.declared.split(","):
            spec, out = declaring(real, declared), Path(folder) / "out"
            rows = []
            for seed in range(given.runs):
                model = fit(spec, epsilon=given.epsilon, delta=given.delta, entropy=TestEntropy(seed))
                generate(model, out, seed=seed, force=True)
                full = evaluate(
                    real, out, workload=given.data / "workloads/adult_sam_1000.sql", floor=False, lambdas=(2,)
                )
                fewer = evaluate(without, out, floor=False, lambdas=(2,))
                whole = full.workload["q_error"].all
                assert whole is not None
                errors = whole.errors
                kld = fewer.marginals[2]["kld"].values.value
                rows.append((kld, errors.mean, errors.median, errors.p75, errors.p95))
            kld, *errors = np.median(np.array(rows, float), axis=0)
            said = "/".join(f"{error:.3g}" for error in errors)
            print(f"declared {declared}: KLD2 {kld:.3f}, Q mean/median/75th/95th {said}", flush=True)


def declaring(source: Path, what: str) -> Spec:
    """A spec in which some domains are those of the data, as if they were public knowledge."""
    spec, data = draft(source), draft(source, domains="data")
    protection = spec.protection()
    known: dict[tuple[str, str], tuple[Domain, Origin]] = {}
    for table, column in spec.wanted(protection):
        domain, kind = data.column(table, column).domain, protection.schema.table(table).column(column).type.kind
        if domain is not None and (what == "all" or (what == "texts" and kind is Kind.TEXT)):
            known[table, column] = domain, Origin.DECLARED
    return spec.with_domains(known)


if __name__ == "__main__":
    main()
