"""What a fit and its plan check first, by the spec alone: method, promise, tables, columns and rules."""

from dataclasses import dataclass
from fractions import Fraction

from privbench.fitting.computed import check_counted
from privbench.fitting.domains import check_wanted
from privbench.fitting.promise import check_method
from privbench.model.chosen import Chosen, method_settings, with_method
from privbench.model.clustering import check_clustering
from privbench.model.facts import sizes_are_public
from privbench.model.numbering import check_numbering
from privbench.model.order import generation_order
from privbench.model.schedule import check_schedule
from privbench.rules.computed import check_functions
from privbench.rules.row_rules import check_rules_work
from privbench.schema.spec import Spec
from privbench.schema.unit import Protection


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A spec that can be fitted, as far as can be told without the data."""

    spec: Spec
    chosen: Chosen
    protection: Protection
    public_sizes: bool


def prepare(spec: Spec, *, method: str | None, delta: Fraction) -> Prepared:
    """Check a spec for a fit by some method. Raises SpecError or SchemaError that names what to change."""
    spec = with_method(spec, method)
    spec.check_reuse()
    chosen = method_settings(spec)
    check_method(chosen.method, delta)
    protection = spec.protection()
    check_wanted(spec, protection, delta)
    generation_order(spec, protection, owners_first=chosen.method.children_with_owner)
    check_counted(spec, protection)
    check_functions(protection)
    check_numbering(spec, protection)
    check_clustering(spec, protection)
    check_rules_work(protection.schema)
    check_schedule(spec, protection)
    public_sizes = sizes_are_public(spec, chosen.settings)
    return Prepared(spec=spec, chosen=chosen, protection=protection, public_sizes=public_sizes)
