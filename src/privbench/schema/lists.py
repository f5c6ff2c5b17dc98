"""Hidden lists: what tables of one owner share, as a table that exists in the model alone.

A player's batting, pitching and fielding rows are of the same seasons. A list has one row for each season of a player
that any of these tables has; their rows are owned by rows of the list, and have its year from there. In the spec a list
is a table with `list_of`; it is read from the tables that it is a list of, and not published.
"""

from privbench.errors import SpecError
from privbench.schema.expression import ColumnName, Expression
from privbench.schema.tables import Table
from privbench.schema.unit import LinkKind, Protection, Role


def lists_of(protection: Protection) -> tuple[Table, ...]:
    """The hidden lists, those of other lists last."""
    return tuple(t for name in reversed(protection.order) if (t := protection.schema.table(name)).list_of)


def listed_columns(protection: Protection, table: str) -> dict[str, str]:
    """The columns of a table that have values of their own in its hidden list, and what they are called there.

    They are those of its key into the list but the unit's: in a key, and yet no row numbers, as a year or a day is.
    """
    key = protection.owners.get(table)
    if key is None or not (of := protection.schema.table(key.table)).list_of:
        return {}
    return {column: there for column, there in zip(key.columns, key.references, strict=True) if there in of.attributes}


def rules_on_lists(protection: Protection, member: str) -> tuple[Expression, ...]:
    """The rules of a member that its row of the list decides alone, as rules over rows of the list.

    Only list rows that keep them have rows of the member: a table of salaries may begin later than the seasons.
    """
    listed = listed_columns(protection, member)
    if not listed:
        return ()
    of = protection.owners[member].table

    def there(name: ColumnName) -> ColumnName:
        own = name.table is None or name.table == of
        return ColumnName(None, listed.get(name.column, name.column)) if own else name

    rules = [rule for rule in protection.schema.table(member).checks if rule.columns]
    return tuple(
        rule.spelled(there)
        for rule in rules
        if all(name.table is not None or name.column in listed for name in rule.columns)
    )


def check_lists(protection: Protection) -> None:
    """Refuse a list that cannot be read from its members. Raises SpecError naming its path in the spec.

    What is checked here makes the rows of a list a function of one entity's rows (docs/proofs/tree.md, 3).
    """
    for table in protection.schema.tables:
        if table.list_of:
            _check_list(protection, table)
            for member in table.list_of:
                _check_member(protection, table, member)


def _check_list(protection: Protection, table: Table) -> None:
    where, unit = f"tables.{table.name}.list_of", protection.entity
    if protection.roles[table.name] is not Role.OWNED or protection.owner_keys(table.name)[0].table != unit:
        raise SpecError(
            f"{where}: a list belongs to the unit. Give it a foreign key to {unit} as its `owner`; or, if another list "
            f"owns it, a foreign key to {unit} with `inside: true`."
        )
    owner = tuple(dict.fromkeys(c for key in protection.owner_keys(table.name) for c in key.columns))
    if not set(owner) <= set(table.primary_key):
        raise SpecError(
            f"{where}: the rows of a list are told apart by its key, which holds those of its owners. Give it "
            f"`key: [{', '.join(owner)}, ..]`."
        )
    kinds = (LinkKind.OWNER, LinkKind.IMPLIED, LinkKind.CATEGORY)
    if held := [link for link in protection.keys if link.table == table.name and link.kind not in kinds]:
        raise SpecError(f"{where}: a list has no keys to private tables beside its owners'. Take {held[0].key} out.")
    foreign = [
        k for k in protection.keys if k.target == table.name and k.kind not in (LinkKind.OWNER, LinkKind.IMPLIED)
    ]
    foreign += [k for k in protection.links_to(table.name) if k.table not in table.list_of]
    if foreign:
        raise SpecError(
            f"{where}: only rows of its members reference rows of a list. Take {foreign[0].key} out of "
            f"`foreign_keys` under {foreign[0].table}, or name {foreign[0].table} in `list_of`."
        )


def _check_member(protection: Protection, table: Table, member: str) -> None:
    where = f"tables.{table.name}.list_of"
    key = protection.owners.get(member)
    if key is None or key.table != table.name or set(key.references) != set(table.primary_key):
        raise SpecError(
            f"{where}: rows of {member} must be owned by rows of the list. Give {member} a foreign key "
            f"{{columns: [..], table: {table.name}, references: [{', '.join(table.primary_key)}]}}, name its "
            "columns as `owner`, and say `inside: true` beside other keys of it that lead to the same entity."
        )
    of_list = dict(zip(key.references, key.columns, strict=True))
    unit = protection.owner_keys(table.name)[0]
    wanted = {(of_list[column], reference) for column, reference in zip(unit.columns, unit.references, strict=True)}
    first = protection.owner_keys(member)[0]
    if first.table != unit.table or set(zip(first.columns, first.references, strict=True)) != wanted:
        columns, references = zip(*sorted(wanted), strict=True)
        raise SpecError(
            f"{where}: a row of {member} must be of the entity whose list it is in. Give {member} a foreign key "
            f"{{columns: [{', '.join(columns)}], table: {unit.table}, references: [{', '.join(references)}], inside: "
            f"true}}, and no other one to {unit.table} that is `inside`."
        )
    there = {c.name: c for c in protection.schema.table(member).columns}
    for column in table.columns:
        name = of_list.get(column.name, column.name)
        if name not in there:
            raise SpecError(f"{where}: {member} has no column {name}, from which the list would have its own.")
        if there[name].type != column.type:
            raise SpecError(
                f"{where}: {table.name}.{column.name} is {column.type.sql}, but {member}.{name} is "
                f"{there[name].type.sql}. Give both the same type."
            )
