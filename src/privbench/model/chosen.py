"""The method that a spec or the caller names, with its settings."""

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from privbench.errors import SpecError
from privbench.methods.method import Method, Settings
from privbench.methods.registry import DEFAULT, find_method
from privbench.schema.computed import equal_columns
from privbench.schema.spec import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A method with its settings."""

    method: Method[Any]
    settings: Settings

    def stated(self) -> dict[str, Any]:
        """Settings as the receipt writes them; those that came later only where they are not what was before."""
        stated = {}
        for field in fields(self.settings):  # type: ignore[arg-type]
            value = getattr(self.settings, field.name)
            if not field.metadata.get("later") or value != field.default:
                stated[field.name] = str(value) if isinstance(value, Fraction) else value
        return stated


def with_method(spec: Spec, name: str | None) -> Spec:
    """The spec with the method that the caller names, if any: settings of another method go.

    For a method whose rows do not come with their owners, keys that stay inside the entity are plain references.
    """
    if name is not None and name != spec.method.get("name", DEFAULT):
        spec = spec.model_copy(update={"method": {"name": name}})
    method = find_method(str(spec.method.get("name", DEFAULT)))
    return spec if method.children_with_owner else spec.without_inside()


def method_settings(spec: Spec) -> Chosen:
    """The method that the spec names, with its settings."""
    declared = dict(spec.method)
    name = str(declared.pop("name", DEFAULT))
    method = find_method(name)
    if method.forecast is None:
        _check_budgets(spec, name)
    if not method.computes_columns:
        _check_learnt(spec, name)
    return Chosen(method=method, settings=method.read_settings(declared))


def _check_budgets(spec: Spec, method: str) -> None:
    """Refuse budgets of tables for a method that divides the budget while it spends."""
    declared = [name for name, table in spec.tables.items() if table.budget is not None]
    if declared:
        raise SpecError(f"tables.{declared[0]}.budget: method {method} divides the budget by itself. Take it out.")


def _check_learnt(spec: Spec, method: str) -> None:
    """Refuse numbers of rows and ranks for a method that does not make rows with their owners."""
    if not any(column.computed is not None for table in spec.tables.values() for column in table.columns.values()):
        return
    protection = spec.protection()
    for table in protection.order:
        for column, equals in equal_columns(protection, table).items():
            if equals.owner is None:
                raise SpecError(
                    f"tables.{table}.columns.{column}.computed: method {method} learns every column that is a number "
                    "of rows or a rank. Take it out, and give the column a domain."
                )
