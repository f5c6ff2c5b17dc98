"""Public tables that look like people: the publisher is told before anything is spent, and the reader of a receipt."""

from privbench.schema.unit import Protection, Role
from privbench_verify.people import people_columns, with_bytes


def copied_columns(protection: Protection) -> dict[str, dict[str, str]]:
    """The SQL types of the columns of each public table that is copied, by name."""
    tables = (t for t in protection.schema.tables if protection.roles[t.name] is Role.PUBLIC)
    return {t.name: {c.name: c.type.sql for c in t.columns} for t in tables if t.name not in protection.made_up}


def people_in(protection: Protection) -> dict[str, dict[str, str]]:
    """The columns that look like people, with their types, of each public table that is copied."""
    found = {table: people_columns(table, columns) for table, columns in copied_columns(protection).items()}
    return {table: columns for table, columns in found.items() if columns}


def people_warnings(protection: Protection) -> list[str]:
    """Say which public tables look like people, and what else they can be."""
    lines = []
    for table, columns in people_in(protection).items():
        names = ", ".join(with_bytes(name, kind) for name, kind in columns.items())
        lines.append(
            f"public table {table} has columns that look like people: {names}. They are published as they are. If that "
            f"is not meant: `--made-up {table}` (`made_up: N` in the spec) makes rows up instead; or name an owner "
            f"(`--owned-by {table}=OWNER`), or drop the table or these columns (`--drop`)."
        )
    return lines
