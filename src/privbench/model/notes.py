"""What to tell of a model: how sure sizes are, columns that are not as in the source, lists of strings.

Columns change where their type has no codec or becomes another one, or where a key may be NULL since some reference no
row. Commands and the README of a bundle list them. What the publisher dropped is not among them: only the publisher is
told.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from privbench.methods.domains.budget import STRING_REMEDIES
from privbench.model.facts import tables_of_known_size
from privbench.model.model import Model
from privbench.schema.domain import Domain, Origin, Text, Values, implied_by_type
from privbench.schema.literals import LiteralHolder, literal_holders
from privbench.schema.spec import Spec
from privbench.schema.table_spec import ColumnSpec
from privbench.schema.tables import Table
from privbench.schema.types import Kind, parse_type
from privbench.schema.unit import Neighbours
from privbench.spn.infer import marginal

_SHORTEST = {"json": "{}", "xml": "<value/>", "text_array": "{}", "number_array": "{}", "empty_array": "{}"}
"""What a made-up value is where there is no room for more."""
MISSED = 0.1
"""A list is worth a warning if a larger share of the strings is not in it."""
UNSURE = 0.2
"""A size is worth a warning if it is expected to be further off than this share of itself."""
WIDE = 3.0
"""A range whose upper end is more than so many times its lower one is told in place of a standard error."""
NOISE = 10.0
"""Beyond this factor between its ends a size is not told from noise."""


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
    """List the columns whose type has no codec or becomes another, and keys that may be NULL though they may not be.

    Of private tables also those whose values are made up: public ones are copied, and made-up ones are told as a whole.
    """
    schema = spec.protection().schema
    changes = []
    for table in schema.tables:
        private = not spec.tables[table.name].is_public
        nullable = {c.name for c in table.columns if c.nullable}
        for name, column in spec.tables[table.name].columns.items():
            place = {"table": table.name, "column": name}
            if column.source_type is not None:
                here = None if column.drop else f"{column.type} here"
                changes.append(ColumnChange(**place, source=column.source_type, here=here))
            if private and not column.drop and (made_up := _made_up(column, table, name)) is not None:
                changes.append(ColumnChange(**place, source=column.type, here=made_up))
            if not column.null and name in nullable:
                here = "may be NULL here, as keys to missing rows are"
                changes.append(ColumnChange(**place, source="NOT NULL", here=here))
    return tuple(changes)


def _made_up(column: ColumnSpec, table: Table, name: str) -> str | None:
    """What stands for values that are not modelled, of a type that travels as text; None for keys and all others."""
    kind = parse_type(column.type)
    in_key = any(name in columns for columns in (*table.keys, *(key.columns for key in table.foreign_keys)))
    is_computed = column.computed is not None or column.determined_by is not None
    if kind.syntax is None or in_key or is_computed or isinstance(column.domain or implied_by_type(kind), Values):
        return None
    shortest = _SHORTEST.get(kind.syntax)
    if kind.syntax == "empty_array":
        return f"as often NULL here, and else always {shortest}"
    has_lengths = not isinstance(column.domain, Text) or len(column.domain.text) > 2
    made = f"made up here in its syntax, as often NULL{' and about as long' if has_lengths else ''}"
    return made if shortest is None else f"{made} (a short one is {shortest})"


def change_lines(spec: Spec) -> list[str]:
    """Say which columns are not as in the source, a line for each kind of change."""
    kinds: dict[str, list[str]] = {}
    for change in column_changes(spec):
        kinds.setdefault(change.text, []).append(f"{change.table}.{change.column}")
    return [f"{kind}: {', '.join(columns)}" for kind, columns in kinds.items()]


def unkept_checks(spec: Spec) -> list[str]:
    """Say which CHECKs of the source generated rows may break, and why; the rows of public tables are copied."""
    lines = []
    for table, words in spec.tables.items():
        kept = {rule.check for rule in words.rules if rule.left_out is None}
        left_out = [rule for rule in words.rules if rule.left_out is not None and rule.check not in kept]
        lines += [f"{table}: {rule.check} ({rule.left_out})" for rule in left_out if not words.public]
    return lines


def published_literals(spec: Spec) -> tuple[LiteralHolder, ...]:
    """List the definitions, and rules from the data, that hold literals and that a model of this spec publishes."""
    published = replace(spec.schema(), original=spec.published().original)
    return literal_holders(published, found=set(spec.rules_from_data()))


def found_lists(model: Model) -> dict[str, int]:
    """How many strings each list has (by `table.column`) that was found with budget, and is published as it is."""
    return {f"{t}.{c}": len(domain.values) for t, c, domain in _searched_strings(model) if isinstance(domain, Values)}


def list_warnings(model: Model) -> list[str]:
    """Say for which columns no list was found, and which lists leave out a good part."""
    made_up = [f"{t}.{c}" for t, c, domain in _searched_strings(model) if not isinstance(domain, Values)]
    shares = {
        f"{t}.{c}": _unlisted(model, t, c) for t, c, domain in _searched_strings(model) if isinstance(domain, Values)
    }
    poor = [f"{name} ({share:.0%} of its texts)" for name, share in shares.items() if share > MISSED]
    lines = []
    if made_up:
        lines.append(f"Too few entities share a text for a list of {', '.join(made_up)}: texts there are made up.")
    if poor:
        lines.append(f"Lists that were found leave out a good part, for which texts are made up: {', '.join(poor)}.")
    return [*lines, STRING_REMEDIES] if lines else []


def size_words(error: float | None, low: float | None = None, high: float | None = None) -> str:
    """How sure a size is, by its expected relative standard error, or by its range where that is wide.

    >>> [size_words(error) for error in (0.0, 0.0004, 0.123, None)]
    ['public', '+- 0.04 %', '+- 12 %', 'not known']
    >>> size_words(2.4, 60.4, 174_557), size_words(0.4, 500, 2000), size_words(0.4, 500, 1200)
    ('90 % range 60 to 175,000: not told from noise', '90 % range 500 to 2,000', '+- 40 %')
    """
    if error is None:
        return "not known"
    if error == 0:
        return "public"
    if low is None or high is None or not _is_wide(low, high):
        return f"+- {100 * error:.2g} %" if error < 1 else f"+- {100 * error:.0f} %"
    noise = ": not told from noise" if high > NOISE * low else ""
    return f"90 % range {_in_short(low)} to {_in_short(high)}{noise}"


def _is_wide(low: float | None, high: float | None) -> bool:
    """Whether a range is too wide for a standard error to say what it is."""
    return low is not None and high is not None and high > WIDE * low


def _in_short(number: float) -> str:
    """A number of rows in three digits.

    >>> _in_short(174_557), _in_short(60.4)
    ('175,000', '60')
    """
    return f"{round(float(f'{number:.3g}')):,}"


def size_warnings(model: Model) -> list[str]:
    """Say which sizes are expected to be far off, and what helps."""
    allowed = model.protection.neighbours is Neighbours.REPLACE
    could_be_public = tables_of_known_size(model.protection, public_sizes=True) if allowed else ()
    lines = []
    for name in model.protection.order:
        table = model.tables[name]
        error, low, high = table.rows_error, table.rows_low, table.rows_high
        if error is None or not (error > UNSURE or _is_wide(low, high)):
            continue
        declare = (
            "`--sizes public` of draft and synth (`sizes: public` in the spec), if the sizes of all tables are public: "
            "the noise would be gone; or "
        )
        remedies = f"{declare if name in could_be_public else ''}a larger epsilon"
        words = size_words(error, low, high)
        size = f"; {words}" if _is_wide(low, high) else f" {words} (standard error)"
        lines.append(
            f"{name}: its size was learnt with much noise: about {_in_short(table.rows)} rows{size}. "
            f"What helps: {remedies}."
        )
    return lines


def _searched_strings(model: Model) -> Iterator[tuple[str, str, Domain]]:
    """Table, column and domain of the columns of strings whose domain was found with budget."""
    for table in model.protection.order:
        for column in model.protection.attributes(table):
            column_spec = model.spec.column(table, column)
            kind = model.protection.schema.table(table).column(column).type.kind
            if kind is Kind.TEXT and column_spec.origin is Origin.PRIVATE and column_spec.domain is not None:
                yield table, column, column_spec.domain


def _unlisted(model: Model, table: str, column: str) -> float:
    """The share of strings that are not in the list, by the model."""
    codec, shares = model.codecs[table][column], marginal(model.tables[table].network, column)
    if codec.other_code is None:
        return 0.0
    nulls = 0.0 if codec.null_code is None else float(shares[codec.null_code])
    return float(shares[codec.other_code]) / max(1 - nulls, 1e-9)
