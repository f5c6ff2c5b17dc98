"""Libraries that take long to load, which a command may or may not need: loaded when something of them is first used.

    from privbench.deferred import duckdb, exp, sqlglot

A module that imports one here and names its types in annotations says `from __future__ import annotations`, or the
annotations would load it.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any


class _Deferred(ModuleType):
    """Stands for a module until something of it is used."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import sqlite3

    import duckdb
    import sqlglot
    import yaml
    from sqlglot import errors as sql_errors
    from sqlglot import expressions as exp
else:
    duckdb, sqlglot, yaml = _Deferred("duckdb"), _Deferred("sqlglot"), _Deferred("yaml")
    sqlite3 = _Deferred("sqlite3")
    exp, sql_errors = _Deferred("sqlglot.expressions"), _Deferred("sqlglot.errors")

__all__ = ["duckdb", "exp", "sql_errors", "sqlglot", "sqlite3", "yaml"]
