"""What the script of the page draws, as JSON: both pages, the publisher's and the publishable one, use these keys."""

from collections.abc import Iterable
from typing import Any

from privbench.evaluation.result import ColumnResult, Histogram, KeyResult, Measure, Result, TableResult
from privbench.model.model import Model
from privbench.report.drawn import network
from privbench.report.heat import query_heat, read_queries
from privbench.report.verdict import grade_distance
from privbench.workload.query import Statement


def result_data(result: Result, model: Model | None) -> dict[str, Any]:
    """Everything that is drawn of an evaluation."""
    asked = {} if model is None else heat_data(model, read_queries(model, result.queries), result)
    by_number = {q.number: q for q in result.queries}
    for query in asked.get("heat", []):
        answered = by_number[query["n"]]
        if len(query["trees"]) == 1 and answered.joins == 0:
            query["trees"][0]["truth"] = _share(result, query["trees"][0]["table"], answered.real)
        query |= {"real": answered.real, "synthetic": answered.synthetic, "q": rounded(answered.q_error)}
    return {
        "sides": ["real", "synthetic"],
        "tables": [_table(t) for t in result.tables if t.columns],
        "keys": [_key(k) for k in result.keys],
        "queries": [
            {"n": q.number, "j": q.joins, "r": q.real, "s": q.synthetic, "q": rounded(q.q_error), "f": rounded(q.floor)}
            for q in result.queries
            if q.q_error is not None
        ],
        **asked,
    }


def heat_data(model: Model, statements: Iterable[Statement], result: Result | None) -> dict[str, Any]:
    """The networks, and queries to colour them by."""
    heat = [found for s in statements if (found := query_heat(model, s, result)) is not None]
    return {
        "networks": {name: network(table.network) for name, table in model.tables.items()},
        "rows": {name: round(table.rows) for name, table in model.tables.items()},
        "heat": heat,
    }


def plot(name: str, histogram: Histogram, **about: Any) -> dict[str, Any]:
    """A histogram of two sides."""
    return {
        "name": name,
        "labels": list(histogram.labels),
        "a": list(histogram.real),
        "b": list(histogram.synthetic),
        **about,
    }


def rounded(value: float | None) -> float | None:
    """Four digits are enough for a picture."""
    return None if value is None else float(f"{value:.4g}")


def _table(table: TableResult) -> dict[str, Any]:
    return {
        "name": table.name,
        "columns": [_column(c) for c in table.columns],
        "pairs": [[rounded(v) for v in row] for row in table.pair_tvd],
    }


def _column(column: ColumnResult) -> dict[str, Any]:
    same = column.real_type == column.synthetic_type
    kind = column.real_type if same else f"{column.real_type} / {column.synthetic_type}"
    distinct = f"{column.real_distinct:,} / {column.synthetic_distinct:,} distinct"
    return plot(
        column.name,
        column.histogram,
        about=f"{kind} · {distinct}",
        ordered=column.ordered,
        **_distance(column.distances.tvd_codes),
    )


def _key(key: KeyResult) -> dict[str, Any]:
    about = f"rows of {key.table} per row of {key.parent}"
    return plot(key.name, key.fanout, about=about, ordered=True, **_distance(key.fanout_tvd))


def _share(result: Result, table: str, rows: int | None) -> float | None:
    """The share of a real table's rows."""
    total = sum(t.real_rows for t in result.tables if t.name.casefold() == table.casefold())
    return rounded(rows / total) if rows is not None and total else None


def _distance(measure: Measure) -> dict[str, Any]:
    return {"tvd": rounded(measure.value), "floor": rounded(measure.floor), "grade": grade_distance(measure).value}
