"""A Result as JSON: the keys of docs/result.md, which the report and other programs read."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from privbench.evaluation.result import Distances, Measure, QErrors, Quantiles, Result, Summary, TableResult

VERSION = 1
WARNING = "This file holds exact facts of the private data. It is for the publisher and not for publishing."


def result_json(result: Result) -> dict[str, Any]:
    """Everything of a result, with its figures on top and each figure's floor beside it."""
    return {
        "version": VERSION,
        "warning": WARNING,
        "real": result.real,
        "synthetic": result.synthetic,
        "seed": result.seed,
        "kld": {str(ways): _kld(d) for ways, d in result.marginals.items()},
        "tvd": {str(ways): _tvd(d) for ways, d in result.marginals.items()},
        "cross_kld": _kld(result.cross),
        "cross_tvd": _tvd(result.cross),
        "fanout_kld": _measure(result.fanout_kld),
        "fanout_tvd": _measure(result.fanout_tvd),
        "q_error": None if result.q_errors is None else _q_errors(result.q_errors),
        "tables": [_table(table) for table in result.tables],
        "keys": [asdict(key) | {"cross": _distances(key.cross), "name": key.name} for key in result.keys],
        "queries": [asdict(query) for query in result.queries],
        "skips": [asdict(skip) for skip in result.skips],
        "seconds": dict(result.seconds),
    }


def _kld(found: Distances) -> dict[str, Any]:
    return _both(found.kld_values, found.kld_codes)


def _tvd(found: Distances) -> dict[str, Any]:
    return _both(found.tvd_values, found.tvd_codes)


def _both(values: Measure, codes: Measure) -> dict[str, Any]:
    return {"values": values.value, "codes": codes.value, "floor": {"values": values.floor, "codes": codes.floor}}


def _distances(found: Distances) -> dict[str, Any]:
    return {"kld": _kld(found), "tvd": _tvd(found)}


def _measure(found: Measure) -> dict[str, Any]:
    return {"value": found.value, "floor": found.floor}


def _table(table: TableResult) -> dict[str, Any]:
    columns = [asdict(c) | {"distances": _distances(c.distances)} for c in table.columns]
    marginals = {
        str(m.ways): {"counted": m.counted, "total": m.total} | _distances(m.distances) for m in table.marginals
    }
    return asdict(table) | {"columns": columns, "marginals": marginals}


def _q_errors(found: QErrors) -> dict[str, Any]:
    whole = {"queries": 0, "floor": None} if found.all is None else _summary(found.all)
    return whole | {
        "failed": found.failed,
        "by_joins": _summaries({str(joins): s for joins, s in found.by_joins.items()}),
        "by_cardinality": _summaries(found.by_cardinality),
    }


def _summaries(found: Mapping[str, Summary]) -> dict[str, Any]:
    return {name: _summary(summary) for name, summary in found.items()}


def _summary(found: Summary) -> dict[str, Any]:
    floor = None if found.floor is None else _quantiles(found.floor)
    return _quantiles(found.errors) | {"cardinalities": list(found.cardinalities), "floor": floor}


def _quantiles(found: Quantiles) -> dict[str, Any]:
    return asdict(found)
