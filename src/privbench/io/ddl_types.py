"""SQL types as sqlglot parses them, turned into ours; shared by `schema.sql` and the DuckDB catalogue.

Where a system has a type of its own that one of ours holds without loss, the table below says which.
"""

from sqlglot import exp

from privbench.errors import SchemaError
from privbench.schema.domain import MAX_CELLS, Domain, Values
from privbench.schema.types import Kind, SqlType, other_type, parse_type

_OURS = {
    "INT": "INTEGER",
    "UINT": "UINTEGER",
    "MEDIUMINT": "INTEGER",
    "UMEDIUMINT": "UINTEGER",
    "UBIGINT": "HUGEINT",
    "INT128": "HUGEINT",
    "YEAR": "SMALLINT",
    "FLOAT": "REAL",  # FLOAT with 32 bits; PostgreSQL's own FLOAT arrives as DOUBLE
    "UFLOAT": "REAL",
    "UDOUBLE": "DOUBLE",
    "UDECIMAL": "DECIMAL",
    "TINYTEXT": "VARCHAR",
    "MEDIUMTEXT": "VARCHAR",
    "LONGTEXT": "VARCHAR",
    "NAME": "VARCHAR",
    "UUID": "CHAR(36)",
    "ENUM": "VARCHAR",
    "TIMESTAMPLTZ": "TIMESTAMPTZ",
    "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
    "TIMESTAMP_NS": "TIMESTAMP",
}
_WITH_SIZE = ("DECIMAL", "VARCHAR", "NVARCHAR", "CHAR", "NCHAR", "BPCHAR", "TEXT")


def sql_type(kind: exp.DataType, *, mysql: bool = False) -> SqlType:
    """Turn a parsed type into ours; raises SchemaError for one without a codec."""
    name = kind.this.name if isinstance(kind.this, exp.DataType.Type) else str(kind.this)
    if mysql and name == "TIMESTAMPTZ":  # MySQL shows its TIMESTAMP without a zone
        name = "TIMESTAMP"
    name = _OURS.get(name, name)
    sizes = [e.name for e in kind.expressions if isinstance(e, exp.DataTypeParam)] if name in _WITH_SIZE else []
    return parse_type(f"{name}({','.join(sizes)})" if sizes and all(map(str.isdigit, sizes)) else name)


def enum_domain(kind: exp.DataType) -> Domain | None:
    """List the values of an ENUM type."""
    labels = tuple(e.name for e in kind.expressions)
    return Values(values=labels) if 0 < len(set(labels)) == len(labels) <= MAX_CELLS else None


def implied_by_type(kind: Kind) -> Domain | None:
    """Give BOOLEAN its two values; no other type lists its own."""
    return Values(values=(False, True)) if kind is Kind.BOOLEAN else None


def named_type(text: str, *, dialect: str) -> tuple[SqlType, Domain | None]:
    """Read the type of a catalogue entry, with the domain it implies; OTHER for one without a codec."""
    kind = exp.DataType.build(text, dialect=dialect, udt=True)
    try:
        found = sql_type(kind)
    except SchemaError:
        return other_type(text), None
    domain = enum_domain(kind) if kind.this is exp.DataType.Type.ENUM else None
    return found, domain or implied_by_type(found.kind)
