"""SQL types as sqlglot parses them, turned into ours; shared by `schema.sql` and the DuckDB catalogue.

Where a system has a type of its own that one of ours holds without loss, the table below says which; spellings
that any system may use are read by `schema.types`.
"""

from sqlglot import exp

from privbench.schema.domain import MAX_CELLS, Domain, Values, implied_by_type
from privbench.schema.types import SqlType, any_type

_OURS = {
    "UMEDIUMINT": "UINTEGER",
    "INT128": "HUGEINT",
    "YEAR": "SMALLINT",
    "FLOAT": "REAL",  # FLOAT with 32 bits; PostgreSQL's own FLOAT arrives as DOUBLE
    "UFLOAT": "REAL",
    "UDOUBLE": "DOUBLE",
    "UDECIMAL": "DECIMAL",
    "NAME": "VARCHAR",
    "UUID": "CHAR(36)",
    "ENUM": "VARCHAR",
    "TIMESTAMPLTZ": "TIMESTAMPTZ",
}
_WITH_SIZE = ("DECIMAL", "VARCHAR", "NVARCHAR", "CHAR", "NCHAR", "BPCHAR", "TEXT")


def typed(kind: exp.DataType, *, shown: str, mysql: bool = False) -> tuple[SqlType, Domain | None]:
    """Turn a parsed type into ours, with the domain it implies; one without a codec is OTHER, named `shown`."""
    found = any_type(_spelled(kind, mysql=mysql), shown=shown)
    return found, _enum_domain(kind) if kind.this is exp.DataType.Type.ENUM else implied_by_type(found.kind)


def named_type(text: str, *, dialect: str) -> tuple[SqlType, Domain | None]:
    """Read the type of a catalogue entry, with the domain it implies."""
    return typed(exp.DataType.build(text, dialect=dialect, udt=True), shown=text)


def _spelled(kind: exp.DataType, *, mysql: bool) -> str:
    name = kind.this.name if isinstance(kind.this, exp.DataType.Type) else str(kind.this)
    if mysql and name == "TIMESTAMPTZ":  # MySQL shows its TIMESTAMP without a zone
        name = "TIMESTAMP"
    name = _OURS.get(name, name)
    sizes = [e.name for e in kind.expressions if isinstance(e, exp.DataTypeParam)] if name in _WITH_SIZE else []
    return f"{name}({','.join(sizes)})" if sizes and all(map(str.isdigit, sizes)) else name


def _enum_domain(kind: exp.DataType) -> Domain | None:
    labels = tuple(e.name for e in kind.expressions)
    return Values(values=labels) if 0 < len(set(labels)) == len(labels) <= MAX_CELLS else None
