"""A small shop with names that try to break out of the page; its model, its bundle and their evaluation."""

from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

import privbench
from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.result import Result
from privbench.spn.nodes import Leaf, Product, Sum

from ..seeded import SeededEntropy

EVIL = "</script><img src=x onerror=alert(1)><!--"
QUERIES = f"""
SELECT COUNT(*) FROM customer WHERE age <= 3 AND "{EVIL}" = '{EVIL}';
SELECT COUNT(*) FROM customer WHERE age >= 6;
SELECT COUNT(*) FROM customer, sale WHERE customer.id = sale.customer_id AND kind = 'a' AND age < 4;
SELECT COUNT(*) FROM sale WHERE kind IN ('a', 'b') AND amount BETWEEN 10 AND 50;
SELECT COUNT(*) FROM nowhere WHERE '{EVIL}' = 'x';
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    model: privbench.Model
    paper: privbench.Model
    """The same by the paper's method."""
    model_file: Path
    bundle: Path
    result: Result


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("shop")
    real = folder / "real.duckdb"
    with duckdb.connect(str(real)) as connection:
        connection.execute(f"""
CREATE TABLE customer (id INTEGER PRIMARY KEY, "{EVIL}" VARCHAR, age INTEGER);
CREATE TABLE sale (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), amount INTEGER, kind VARCHAR);
INSERT INTO customer SELECT i, ['{EVIL}', 'Bern', NULL][1 + i % 3], i % 9 FROM range(120) t(i);
INSERT INTO sale SELECT i, (i * i) % 120, i // 4, ['a', 'b'][1 + i % 2] FROM range(400) t(i);""")
    spec = privbench.draft(real, unit="customer", domains="data")
    model = privbench.fit(spec, epsilon="5")
    privbench.save_model(model, folder / "shop.model")
    privbench.generate(model, folder / "bundle", seed=1)
    (folder / "q.sql").write_text(QUERIES)
    result = evaluate(real, folder / "bundle", workload=folder / "q.sql", model=model)
    blocks = spec.model_copy(update={"method": {"name": "paper", "min_rows": 20, "dependence_threshold": 0.01}})
    paper = privbench.fit(blocks, epsilon="60", entropy=SeededEntropy())
    return Shop(
        model=with_sum(model),
        paper=paper,
        model_file=folder / "shop.model",
        bundle=folder / "bundle",
        result=result,
    )


def with_sum(model: privbench.Model) -> privbench.Model:
    """The model with a sum at the root of customer: a quarter of the rows is of ages 0 to 3, the others are older."""
    sizes = model.tables["customer"].network.sizes
    ages = np.arange(sizes["age"])

    def part(of_age: np.ndarray) -> Product:
        return Product(
            children=tuple(Leaf(column=c, counts=of_age if c == "age" else np.ones(size)) for c, size in sizes.items())
        )

    young, old = part((ages < 4) * 1.0), part(((ages >= 4) & (ages < 9)) * 1.0)
    network = Sum(children=(young, old), weights=np.array([0.25, 0.75]))
    customer = replace(model.tables["customer"], network=network)
    return replace(model, tables={**model.tables, "customer": customer})
