"""Hidden lists: what tables of one owner share, as a table that exists in the model alone.

A player's batting, pitching and fielding rows are of the same seasons. A list has one row for each season of a player
that any of these tables has; their rows are owned by rows of the list, and have its year from there. In the spec a list
is a table with `list_of`; it is read from the tables that it is a list of, and not published.
"""

from privbench.errors import SpecError
from privbench.schema.tables import Table
from privbench.schema.unit import Protection, Role


def lists_of(protection: Protection) -> tuple[Table, ...]:
    """The hidden lists, those of other lists last."""
    return tuple(t for name in reversed(protection.order) if (t := protection.schema.table(name)).list_of)


def check_lists(protection: Protection) -> None:
    """Refuse a list that cannot be read from its members. Raises SpecError naming its path in the spec."""
    for table in protection.schema.tables:
        if not table.list_of:
            continue
        where = f"tables.{table.name}.list_of"
        if protection.roles[table.name] is not Role.OWNED:
            raise SpecError(
                f"{where}: a list belongs to owners. Give it a foreign key to the table that owns its rows."
            )
        owner = protection.owners[table.name].columns
        if not table.primary_key or not set(owner) <= set(table.primary_key):
            raise SpecError(
                f"{where}: the rows of a list are told apart by its key, which holds the owner's. Give it "
                f"`key: [{', '.join(owner)}, ..]`."
            )
        for member in table.list_of:
            key = protection.owners.get(member)
            if key is None or key.table != table.name or set(key.references) != set(table.primary_key):
                raise SpecError(
                    f"{where}: rows of {member} must be owned by rows of the list. Give {member} a foreign key "
                    f"{{columns: [..], table: {table.name}, references: [{', '.join(table.primary_key)}]}}, name its "
                    "columns as `owner`, and say `inside: true` beside other keys of it that lead to the same entity."
                )
            there = {c.name for c in protection.schema.table(member).columns}
            if lost := [c for c in table.attributes if c not in (*table.primary_key, *there)]:
                raise SpecError(f"{where}: {member} has no column {lost[0]}, from which the list would have its own.")
