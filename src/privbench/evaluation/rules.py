"""Rules, one by one: the share of the rows of each side that keep them.

They are those of the model's spec, if there is one, and the CHECKs of either schema. As in SQL, a row keeps a rule
whose value is NULL. A rule that a side cannot work out has no share there, and a skip says why.
"""

from collections.abc import Mapping

import duckdb
from sqlglot import exp

from privbench.errors import first_line
from privbench.evaluation.databases import Database, Side, qualified
from privbench.evaluation.resample import Ownership
from privbench.evaluation.result import RuleResult
from privbench.io.names import quote_sql
from privbench.model.model import Model
from privbench.schema.domain import Origin
from privbench.schema.expression import DIALECT, Expression
from privbench.schema.tables import Schema


def rule_results(database: Database, ownership: Ownership, model: Model | None) -> tuple[RuleResult, ...]:
    """The share of rows that keep each rule, on both sides."""
    rules = _rules(database.schemas, model)
    from_data = set() if model is None else set(model.spec.rules_from_data())
    return tuple(
        RuleResult(
            table=table,
            rule=rule.sql,
            origin=(Origin.DATA if (table, rule.sql) in from_data else Origin.DECLARED).value,
            real=_share(database, Side.REAL, ownership, table, rule),
            synthetic=_share(database, Side.SYNTHETIC, ownership, table, rule),
        )
        for table, rule in rules
    )


def _rules(schemas: Mapping[Side, Schema], model: Model | None) -> list[tuple[str, Expression]]:
    """Every rule once, whichever schema has it; names of tables may differ in case."""
    own = () if model is None else (model.protection.schema.published(),)
    found: dict[tuple[str, str], tuple[str, Expression]] = {}
    for schema in (*own, schemas[Side.SYNTHETIC], schemas[Side.REAL]):
        for table in schema.tables:
            for rule in table.checks:
                found.setdefault((table.name.casefold(), rule.sql.casefold()), (table.name, rule))
    return list(found.values())


def _share(database: Database, side: Side, ownership: Ownership, table: str, rule: Expression) -> float | None:
    """The share of a table's rows that keep a rule; None for a table without rows, or where it cannot be asked."""
    loaded = database.find(side, table)
    if loaded is None:
        return None
    tables = _path(ownership, table, {name.table for name in rule.columns if name.table is not None})
    kept = f"CAST(({_with_aliases(rule, list(tables))}) AS BOOLEAN) IS DISTINCT FROM FALSE"
    own = qualified(side, loaded.table.name)
    query = f"SELECT avg(CAST(coalesce(TRY({kept}), FALSE) AS INTEGER)) FROM {own} AS t0"  # noqa: S608  parsed
    for at, (other, (owner, columns, references)) in enumerate(tables.items(), start=1):
        on = " AND ".join(
            f"{owner}.{quote_sql(a)} = t{at}.{quote_sql(b)}" for a, b in zip(columns, references, strict=True)
        )
        query += f" LEFT JOIN {qualified(side, other)} AS t{at} ON {on}"
    try:
        [(share,)] = database.rows(query)
    except duckdb.Error as error:
        database.skip(f"{table}: {rule}", f"{side.value}: cannot be worked out ({first_line(error)})")
        return None
    return None if share is None else float(share)


def _path(
    ownership: Ownership, table: str, wanted: set[str]
) -> dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The tables above, up to those that are wanted: each with whose key leads there, its columns and theirs."""
    path: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {}
    alias = "t0"
    while wanted - set(path) and (owner := ownership.owners.get(table)) is not None and not owner.lookup:
        path[owner.table] = (alias, owner.key.columns, owner.key.references)
        alias, table = f"t{len(path)}", owner.table
    return path


def _with_aliases(rule: Expression, above: list[str]) -> str:
    """The rule with each column of the table whose row it is of."""

    def name(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        at = above.index(node.table) + 1 if node.table in above else 0
        return exp.column(node.name, table=f"t{at}", quoted=True)

    return rule.tree.copy().transform(name).sql(DIALECT)
