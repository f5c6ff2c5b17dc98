"""Which columns are not in the synthetic database as they are in the source, and not by the publisher's choice.

Types that have no codec, types that become another one, and keys that may be NULL since some reference no row. Commands
and the README of a bundle list them. What the publisher dropped is not among them: only the publisher is told.
"""

from dataclasses import dataclass

from privbench.schema.spec import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """A column that is not in the synthetic database as it is in the source, not by the publisher's choice."""

    table: str
    column: str
    source: str
    """What it is in the source: a type, or NOT NULL."""
    here: str | None
    """What it is in the synthetic database; None if it was left out."""

    @property
    def text(self) -> str:
        """Both sides in words."""
        return f"{self.source} in the source, {self.here or 'left out, since no type here holds its values'}"


def column_changes(spec: Spec) -> tuple[ColumnChange, ...]:
    """List the columns whose type has no codec or becomes another, and keys that may be NULL though they may not be."""
    schema = spec.protection().schema
    changes = []
    for table in schema.tables:
        nullable = {c.name for c in table.columns if c.nullable}
        for name, column in spec.tables[table.name].columns.items():
            place = {"table": table.name, "column": name}
            if column.source_type is not None:
                here = None if column.drop else f"{column.type} here"
                changes.append(ColumnChange(**place, source=column.source_type, here=here))
            if not column.null and name in nullable:
                here = "may be NULL here, as keys to missing rows are"
                changes.append(ColumnChange(**place, source="NOT NULL", here=here))
    return tuple(changes)


def change_lines(spec: Spec) -> list[str]:
    """Say which columns are not as in the source, a line for each kind of change."""
    kinds: dict[str, list[str]] = {}
    for change in column_changes(spec):
        kinds.setdefault(change.text, []).append(f"{change.table}.{change.column}")
    return [f"{kind}: {', '.join(columns)}" for kind, columns in kinds.items()]
