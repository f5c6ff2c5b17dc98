"""Types as sqlglot parses them, from a script or the catalogue of DuckDB, turned into ours."""

from __future__ import annotations

from privbench.deferred import exp
from privbench.schema.domain import MAX_CELLS, Domain, Values, implied_by_type
from privbench.schema.tables import Column
from privbench.schema.types import MAX_TYPE_TEXT, Kind, SqlType, any_type, enum_type

_OURS = {
    "UMEDIUMINT": "UINTEGER",
    "INT128": "HUGEINT",
    "YEAR": "SMALLINT",
    "FLOAT": "REAL",  # FLOAT with 32 bits; PostgreSQL's own FLOAT arrives as DOUBLE
    "UFLOAT": "REAL",
    "UDOUBLE": "DOUBLE",
    "UDECIMAL": "DECIMAL",
    "NAME": "VARCHAR",
    "OID": "BIGINT",
    "XID": "BIGINT",
    "TIMESTAMPLTZ": "TIMESTAMPTZ",
}
CHANGED = {*_OURS, "UBIGINT", "MEDIUMINT", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"} - {"FLOAT"}
"""Types that become one of ours which is not the same: wider, narrower, or without the list of values."""
_WITH_SIZE = ("DECIMAL", "VARCHAR", "NVARCHAR", "CHAR", "NCHAR", "BPCHAR", "TEXT", "BIT", "BINARY", "VARBINARY")


def typed(kind: exp.DataType, *, shown: str, mysql: bool = False) -> Column:
    """Turn a parsed type into a column without a name: our type, and the domain that the type implies.

    A type without a codec is OTHER, named `shown`; one that becomes another is kept as `source_type`.
    """
    ours = _our_type(kind, shown=shown, mysql=mysql)
    domain = implied_by_type(ours)
    changed = ours.kind is not Kind.OTHER and (_name(kind) in CHANGED or _lacks_digits(kind))
    if kind.this is exp.DataType.Type.ENUM and not ours.labels:
        domain, changed = _enum_domain(kind), True
    return Column(name="", type=ours, implied=domain, source_type=shown[:MAX_TYPE_TEXT] if changed else None)


def _our_type(kind: exp.DataType, *, shown: str, mysql: bool) -> SqlType:
    if kind.this is exp.DataType.Type.ENUM:
        return enum_type(e.name for e in kind.expressions)
    if kind.this is exp.DataType.Type.ARRAY and kind.expressions:
        element = kind.expressions[0]
        known = isinstance(element, exp.DataType) and element.this is not exp.DataType.Type.ARRAY
        return any_type(f"{_our_type(element, shown=element.sql(), mysql=mysql).sql}[]" if known else "", shown=shown)
    if kind.this is exp.DataType.Type.USERDEFINED:
        return any_type(str(kind.args.get("kind")).split(".")[-1].strip('"'), shown=shown)
    return any_type(_spelled(kind, mysql=mysql), shown=shown)


def named_type(text: str, *, dialect: str) -> Column:
    """Read the type of a catalogue entry, as a column without a name."""
    if dialect == "duckdb" and text.upper() == "BIT":  # of any length there
        text = "VARBIT"
    return typed(exp.DataType.build(text, dialect=dialect, udt=True), shown=text)


def _name(kind: exp.DataType) -> str:
    return kind.this.name if isinstance(kind.this, exp.DataType.Type) else str(kind.this)


def _lacks_digits(kind: exp.DataType) -> bool:
    """Whether a DECIMAL does not say how many digits it has, so that ours has fewer."""
    return _name(kind) == "DECIMAL" and not kind.expressions


def _spelled(kind: exp.DataType, *, mysql: bool) -> str:
    name = _name(kind)
    if mysql and name == "TIMESTAMPTZ":  # MySQL shows its TIMESTAMP without a zone
        name = "TIMESTAMP"
    name = _OURS.get(name, name)
    sizes = [e.name for e in kind.expressions if isinstance(e, exp.DataTypeParam)] if name in _WITH_SIZE else []
    return f"{name}({','.join(sizes)})" if sizes and all(map(str.isdigit, sizes)) else name


def _enum_domain(kind: exp.DataType) -> Domain | None:
    labels = tuple(e.name for e in kind.expressions)
    return Values(values=labels) if 0 < len(set(labels)) == len(labels) <= MAX_CELLS else None
