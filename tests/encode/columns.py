"""Columns of every type for hypothesis: values from the whole type, and a domain of each kind that suits it."""

from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from privbench.schema.domain import Bins, Domain, Range, Serial, Text, Values
from privbench.schema.types import Kind, SqlType, parse_type

BINS = {
    "TINYINT": Bins(bins=(-1000, -5, 0, 3, 100, 1000), spikes=(0, 7, 127)),
    "SMALLINT": Bins(bins=(0, 10, 100, 10**6), spikes=(-0, 50), step=2),
    "UTINYINT": Bins(bins=(0, 128, 256)),
    "INTEGER": Bins(bins=(-50, -10, 1, 1000, 10**6), spikes=(-10, 99)),
    "UINTEGER": Bins(bins=(0, 10, 2**32)),
    "BIGINT": Bins(bins=(-(2**63), -1, 1, 2**62, 2**63), spikes=(5,)),
    "REAL": Bins(bins=(-1, 0.5, 0.7, 80.3), spikes=(0.6,), step=0.1),
    "DOUBLE": Bins(bins=(-1e6, 0, 0.1, 1, 1e6), spikes=(0.29,)),
    "DECIMAL(5,2)": Bins(bins=(-9999, 0, "0.05", 10, 99999), spikes=("0.29",)),
    "DECIMAL(38,10)": Bins(bins=(0, 10**20, 10**27), step=10**10),
    "DECIMAL(38,0)": Bins(bins=(-(10**18), 0, 10**18)),
    "DATE": Bins(bins=("1900-01-01", "1999-12-31", "2000-01-07", "2030-01-01"), spikes=("2000-01-01",)),
    "TIME": Bins(bins=("00:00:00", "08:00:00", "24:00:00"), step="15min"),
    "TIMESTAMP": Bins(bins=("0001-01-01", "2000-01-01", "2020-02-01", "9999-12-31"), spikes=("2010-05-05",), step="1d"),
    "TIMESTAMPTZ": Bins(bins=("1999-12-31 22:30:00", "2000-01-01 00:30:00"), step="1h"),
}
RANGES = {
    "TINYINT": Range(range=(-128, 127)),
    "SMALLINT": Range(range=(-5, 25), step=5),
    "BIGINT": Range(range=(2**63 - 9, 2**63 - 1)),
    "DOUBLE": Range(range=(0.5, 3.5), step=0.1),
    "REAL": Range(range=(0, 9)),
    "DECIMAL(5,2)": Range(range=("-0.50", "0.50")),
    "DATE": Range(range=("2020-01-01", "2020-12-31"), step="7d" if False else 1),
    "TIME": Range(range=("00:00:00", "23:00:00"), step="1h"),
    "TIMESTAMP": Range(range=("2020-01-01 00:00:00", "2020-01-02 00:00:00"), step=1800),
}
VALUES = {
    "INTEGER": Values(values=(5, -3, 1000)),
    "BIGINT": Values(values=(-(2**63), 0, 2**63 - 1)),
    "DOUBLE": Values(values=(1e300, -1e300, 0.1, 5e-324, 0)),
    "REAL": Values(values=(0.1, 0.2, 3e38)),
    "DECIMAL(5,2)": Values(values=("1.5", "-2", "0.99")),
    "DECIMAL(38,0)": Values(values=(10**37, 10**37 + 1, -(10**37))),
    "DATE": Values(values=("2020-02-29", "1970-01-01")),
    "TIME": Values(values=("12:00:00", "23:59:59.999999")),
    "TIMESTAMP": Values(values=("2020-01-01 10:00:00", "1969-12-31 23:59:59")),
    "BOOLEAN": Values(values=(False, True)),
    "VARCHAR": Values(values=("b", "a", "", "ü\N{SNOWMAN}"), other=True),
    "VARCHAR(1)": Values(values=("x", "0"), other=True),
    "CHAR(2)": Values(values=("NY", "CA")),
}
TEXTS = {
    "VARCHAR": Text(text=(0, 1, 4, 16, 64), distinct=1000),
    "VARCHAR(20)": Text(text=(2, 8, 20), distinct=50),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A type with a domain that suits it."""

    type: SqlType
    domain: Domain


CASES = [
    Case(type=parse_type(name), domain=domain)
    for table in (BINS, RANGES, VALUES, TEXTS)
    for name, domain in table.items()
]
SERIALS = [Case(type=parse_type(name), domain=Serial()) for name in (*BINS, "VARCHAR")]


def values_of(kind: SqlType) -> st.SearchStrategy[Any]:
    """Any value the type can hold, as pyarrow reads it from Python; dates and timestamps as their raw numbers."""
    match kind.kind:
        case Kind.INTEGER:
            return st.integers(*kind.bounds) | st.integers(max(kind.bounds[0], -120), min(kind.bounds[1], 120))
        case Kind.FLOAT:
            return st.floats(width=kind.bits) | st.floats(-2, 100, width=kind.bits)
        case Kind.DECIMAL:
            most = 10**kind.precision - 1
            numbers = st.integers(-most, most) | st.integers(max(-most, -500), min(most, 500))
            return numbers.map(lambda n: Decimal(f"{n}E-{kind.scale}"))
        case Kind.BOOLEAN:
            return st.booleans()
        case Kind.TEXT:
            return st.text(max_size=kind.length or 80) | st.sampled_from(["a", "b", "", "x", "ü\N{SNOWMAN}"])
        case Kind.DATE:
            return st.integers(-(2**31), 2**31 - 1) | st.integers(10_000, 20_000)
        case Kind.TIME:
            return st.integers(0, 86_400 * 10**6 - 1)
        case Kind.TIMESTAMP:
            return st.integers(-(2**63), 2**63 - 1) | st.integers(9 * 10**14, 16 * 10**14)


def array_of(kind: SqlType, values: list[Any]) -> pa.Array:
    """The values as the Arrow array that a source would deliver."""
    if kind.kind is Kind.DATE:
        return pa.array(values, pa.int32()).cast(kind.arrow)
    if kind.kind in (Kind.TIME, Kind.TIMESTAMP):
        return pa.array(values, pa.int64()).view(kind.arrow)
    return pa.array(values, kind.arrow)


def moment(value: date | datetime | time) -> str:
    """A date or time as the spec writes it."""
    return value.isoformat()
