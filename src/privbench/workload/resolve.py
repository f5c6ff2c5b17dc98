"""Which column of which table a name in a query stands for, through aliases, subqueries and WITH."""

from enum import Enum

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from privbench.io.names import find_name
from privbench.schema.tables import Schema
from privbench.workload.parse import OutsideError

Base = tuple[str, str]
"""A table of the schema and a column of it."""


class Derived(Enum):
    """What a name stands for that is no column of a table: something that the query computes."""

    COMPUTED = "computed"


class Resolver:
    """Resolves the names of one statement."""

    def __init__(self, tree: exp.Expr, schema: Schema) -> None:
        self._tables = {t.name: t for t in schema.tables}
        try:
            scopes = traverse_scope(tree) if isinstance(tree, exp.Query) else []
        except SqlglotError as error:
            raise OutsideError(f"names a table twice or none ({str(error).splitlines()[0]})") from None
        if not scopes:
            raise OutsideError("is not a query")
        self._scopes = {id(scope.expression): scope for scope in scopes}
        for scope in scopes:
            for source in scope.sources.values():
                if isinstance(source, exp.Table) and find_name(source.name, self._tables) is None:
                    raise OutsideError(f"selects from {source.name}, which is not in the model")

    def resolve(self, node: exp.Column) -> Base | Derived:
        """Find what a column stands for; OutsideError if nothing does."""
        select = node.find_ancestor(exp.Select)
        scope = self._scopes.get(id(select))
        while scope is not None:
            found = self._within(scope, node.name, node.table)
            if found is not None:
                return found
            scope = scope.parent
        raise OutsideError(f"names a column {node.sql()} that is not in the model")

    def _within(self, scope: Scope, name: str, table: str) -> Base | Derived | None:
        sources = dict(scope.sources)
        if table:
            alias = find_name(table, sources)
            return None if alias is None else self._of(scope, alias, name)
        found = [f for f in (self._of(scope, alias, name) for alias in sources) if f is not None]
        if found:
            return found[0] if len(found) == 1 else Derived.COMPUTED
        names = [s.alias for s in _selects(scope) if isinstance(s, exp.Alias)]
        return Derived.COMPUTED if find_name(name, names) is not None else None

    def _of(self, scope: Scope, alias: str, name: str) -> Base | Derived | None:
        """The column of one source."""
        source = scope.sources[alias]
        if isinstance(source, exp.Table):
            table = self._tables[find_name(source.name, self._tables) or ""]
            column = find_name(name, (c.name for c in table.columns))
            return None if column is None else (table.name, column)
        selects = _selects(source)
        outer = _renamed(source) or [s.alias_or_name for s in selects]
        column = find_name(name, outer)
        if column is None:
            return Derived.COMPUTED if any(s.is_star for s in selects) else None
        inside = selects[outer.index(column)].unalias()
        found = self._within(source, inside.name, inside.table) if isinstance(inside, exp.Column) else None
        return found or Derived.COMPUTED


def _selects(scope: Scope) -> list[exp.Expr]:
    return scope.expression.selects if isinstance(scope.expression, exp.Query) else []


def _renamed(scope: Scope) -> list[str]:
    """The names that `AS t (a, b)` gives to the columns of a subquery."""
    parent = scope.expression.parent
    return list(parent.alias_column_names) if isinstance(parent, (exp.Subquery, exp.CTE)) else []
