"""Domains and codecs inside the rules: a column that a CHECK bounds or lists never decodes to a value outside.

Only rules that look at one column narrow it; what relates two columns is met by drawing rows again. All of it is
public: it follows from the domain, the type and the rules. Where nothing of a domain is left there is a contradiction,
which is for the caller to tell.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codec, compile_codec
from privbench.encode.grid import Grid, bins_on, range_on
from privbench.encode.interval import IntervalCodec
from privbench.encode.pattern import Pattern, PatternCodec
from privbench.encode.scalar import number_of
from privbench.encode.text import LengthCodec
from privbench.errors import SpecError
from privbench.rules.row_rules import RowRules
from privbench.schema.check_facts import Facts, facts_of, implied_domain
from privbench.schema.domain import USUAL_SKEW, Bins, Domain, Range, Serial, Text, Values
from privbench.schema.expression import ColumnName, Expression
from privbench.schema.tables import Table
from privbench.schema.types import Kind, SqlType

_OTHERS = 64
"""How many made-up strings are looked at to see whether OTHER can keep the rules."""
_FLOAT_STEP = Fraction(1, 10**5)


def rules_about(table: Table, column: str) -> tuple[Expression, ...]:
    """The rules of a table that look at this column alone; none of one whose codes are differences."""
    if table.column(column).relative_to is not None:
        return ()
    return tuple(check for check in table.checks if check.columns == (ColumnName(None, column),))


def narrowed(
    where: str, kind: SqlType, domain: Domain, rules: Sequence[Expression], *, unique: bool = False
) -> Domain | None:
    """The part of a column's domain that rules about the column alone leave; None if that is nothing.

    >>> from privbench.schema.expression import parse_expression
    >>> from privbench.schema.types import parse_type
    >>> price = parse_expression("price > 0 AND price < 100", where="rules")
    >>> narrowed("t.price", parse_type("DECIMAL(9,2)"), Bins(bins=(-100, 0, 50, 1000)), [price]).bins
    ('0.01', '50.00', '100.00')
    """
    if not rules or isinstance(domain, Serial):
        return domain
    facts = facts_of(rules).get(rules[0].columns[0].column, Facts())
    if facts.values is not None and not isinstance(domain, Values) and not unique:
        domain = implied_domain(facts, kind) or domain
    if isinstance(domain, Text):
        lengths = _lengths(kind, facts)
        return lengths and domain.model_copy(update={"text": _clipped_lengths(domain.text, *lengths)})
    within = domain if isinstance(domain, Values | Serial) else _within(where, kind, domain, facts)
    return _listed(where, kind, within, rules) if isinstance(within, Range | Values) else within


def widest_domain(kind: SqlType) -> Domain:
    """All values of an ordered type in one cell."""
    grid = Grid(type=kind, step=_FLOAT_STEP if kind.kind is Kind.FLOAT else Fraction(1))
    return bins_on(grid, (grid.low, grid.high + 1), ())


def ruled_codec(
    where: str,
    kind: SqlType,
    *,
    nullable: bool,
    domain: Domain,
    rules: Sequence[Expression],
    unique: bool = False,
    in_key: bool = False,
) -> Codec:
    """Compile a domain inside the rules about its column. SpecError where they leave nothing of it.

    Of a column `in_key`, alone or with others, no made-up text repeats.
    """
    within = narrowed(where, kind, domain, rules, unique=unique)
    if within is None:
        raise SpecError(
            f"{where}: no value of its domain keeps the rules {'; '.join(map(str, rules))}. Correct the domain, or "
            "take a rule out."
        )
    codec = compile_codec(where, kind, nullable=nullable, domain=within)
    if not isinstance(codec, LengthCodec):
        return codec
    codec = replace(codec, in_key=in_key)
    if not rules:
        return codec
    facts = facts_of(rules).get(rules[0].columns[0].column, Facts())
    if (longest := (_lengths(kind, facts) or (0, None))[1]) is not None:
        codec = replace(codec, longest=np.minimum(codec.longest, longest), limit=longest)
    return PatternCodec(whole=codec, pattern=Pattern(facts.patterns[0])) if facts.patterns else codec


def _within(where: str, kind: SqlType, domain: Range | Bins, facts: Facts) -> Domain | None:
    """The ticks of a domain between the bounds."""
    codec = compile_codec(where, kind, nullable=False, domain=domain)
    if not isinstance(codec, IntervalCodec):
        return domain
    first, last = int(codec.first[0]), int(codec.last[-1])
    low = max([first, *(_above(p, inclusive) for p, inclusive in _places(where, codec.grid, facts.low))])
    high = min([last, *(-_above(-p, inclusive) for p, inclusive in _places(where, codec.grid, facts.high))])
    if low > high:
        return None
    if (low, high) == (first, last):
        return domain
    if isinstance(domain, Range):
        return range_on(codec.grid, low, high)
    edges = [codec.grid.tick(where, edge) for edge in domain.bins]
    heavy = [codec.grid.tick(where, value) for value in domain.heavy_hitters]
    inside = [min(max(edge, low), high + 1) for edge in edges]
    cut = bins_on(codec.grid, inside, [tick for tick in heavy if low <= tick <= high])
    return cut.model_copy(update={"distinct": domain.distinct, "skew": domain.skew})


def _places(where: str, grid: Grid, bounds: Sequence[tuple[object, bool]]) -> list[tuple[Fraction, bool]]:
    """Bounds as places on a grid; those that are no values of the type bound nothing."""
    places = []
    for value, inclusive in bounds:
        try:
            places.append((grid.position(where, value if isinstance(value, bool) else str(value)), inclusive))
        except SpecError:
            continue
    return places


def _above(place: Fraction, inclusive: bool) -> int:
    return ceil(place) if inclusive else floor(place) + 1


def _lengths(kind: SqlType, facts: Facts) -> tuple[int, int | None] | None:
    """The shortest and the longest text that the bounds of lengths and the first pattern allow; None if none is."""
    shortest, longest = facts.shortest, [n for n in (facts.longest, kind.length) if n is not None]
    if facts.patterns:
        least, most = Pattern(facts.patterns[0]).lengths
        shortest = max(shortest, least)
        longest += [] if most is None else [most]
    if longest and shortest > min(longest):
        return None
    return shortest, min(longest, default=None)


def _clipped_lengths(edges: Sequence[int], shortest: int, longest: int | None) -> tuple[int, ...]:
    inside = sorted({max(edge, shortest) if longest is None else min(max(edge, shortest), longest) for edge in edges})
    return tuple(inside) if len(inside) > 1 else (inside[0], inside[0] + 1)


def _listed(where: str, kind: SqlType, domain: Range | Values, rules: Sequence[Expression]) -> Domain | None:
    """The values of a list, or of a range of single values, that keep the rules."""
    codec = compile_codec(where, kind, nullable=False, domain=domain)
    if isinstance(codec, IntervalCodec) and codec.cell_values() is None:  # a long range, whose cells hold many values
        return domain
    other = codec.other_code is not None
    cells = np.arange(codec.size - other, dtype=np.uint16)
    kept = _kept(kind, rules, codec.decode(cells, np.random.default_rng(0), first_row=0))
    if other:
        others = codec.decode(np.full(_OTHERS, codec.other_code, np.uint16), np.random.default_rng(0), first_row=0)
        other = bool(_kept(kind, rules, others).any())
    if not kept.any():
        return None
    if isinstance(domain, Values):
        order = sorted(domain.values, key=str if kind.kind is Kind.TEXT else lambda v: number_of(where, kind, v))
        left_over = {value for value, keep in zip(order, kept.tolist(), strict=True) if keep}
        listed = tuple(value for value in domain.values if value in left_over)
        without_other = {} if other else {"others": None, "shape": None, "skew": USUAL_SKEW}
        return domain.model_copy(update={"values": listed, "other": other, **without_other})
    if not isinstance(codec, IntervalCodec) or kept.all():
        return domain
    ticks = codec.first[np.flatnonzero(kept)]
    if len(ticks) == ticks[-1] - ticks[0] + 1:
        return range_on(codec.grid, int(ticks[0]), int(ticks[-1]))
    return Values(values=tuple(codec.grid.scalar(int(tick)) for tick in ticks))


def _kept(kind: SqlType, rules: Sequence[Expression], values: pa.Array) -> NDArray[np.bool_]:
    column = rules[0].columns[0]
    with RowRules(rules, {column: kind.arrow}, where=str(column)) as asked:
        return np.logical_not(asked.broken({column: values}).any(axis=0), dtype=bool)
