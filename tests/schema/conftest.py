"""Small made schemas, written in one line per table."""

from collections.abc import Callable

import pytest

from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import parse_type

Maker = Callable[..., Schema]


def _table(line: str) -> Table:
    name, _, rest = line.partition(":")
    columns: list[Column] = []
    primary: list[str] = []
    keys: list[ForeignKey] = []
    for word in rest.split():
        column, _, target = word.partition(">")
        plain = column.rstrip("*").split("+")
        columns += [Column(name=c, type=parse_type("INTEGER")) for c in plain if c not in [x.name for x in columns]]
        if column.endswith("*"):
            primary += plain
        if target:
            table, _, references = target.partition(".")
            keys.append(
                ForeignKey(columns=tuple(plain), table=table, references=tuple((references or "id").split("+")))
            )
    return Table(
        name=name.strip(), columns=tuple(columns), primary_key=tuple(dict.fromkeys(primary)), foreign_keys=tuple(keys)
    )


@pytest.fixture
def db() -> Maker:
    """`db("a: id*", "b: id* a_id>a x+y>c.x+y")`: a star marks the primary key, `>` a foreign key, `+` joins columns."""
    return lambda *lines: Schema(tables=tuple(map(_table, lines)))
