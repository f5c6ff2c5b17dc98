"""Every kind of query: what one entity can move its answer by, how many numbers it draws, and what may answer it.

All of it is derived from the query's own fields and the unit, as docs/proofs derives it. A query kind that is not here
is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from privbench_verify.costs import AS_PUBLISHED, CHOICES, FREQUENT, LAPLACE, NOISE
from privbench_verify.facts import ENTITY_WEIGHT, MAP, Equals, Facts, Link, read_equals, read_link
from privbench_verify.read import (
    Json,
    Place,
    ReceiptError,
    fields_of,
    integer_of,
    list_of,
    names_of,
    one_of,
    shown,
    shown_place,
    text_of,
)

COORDINATE = 256
"""The largest centred coordinate of a row, in sums."""
ROW_SCORE = 1026
"""What one row can move a dependence score: 2**10, one for rounding down, one for errors of floats."""
ROW_DISTANCE = 512
"""What one column can add to the distance of a row, in the row split as published."""
_MAX_FULL_ROWS = 2**13
_MAX_AXES = 64
_ON_VALUES = ("magnitude", "step", "cell", "present")
"""Features of the values of a column whose domain is looked for."""
_COMPARISONS = ("agreement", "nearness")
"""Features that say of rows whether they agree with something."""
_HITTERS = "heavy hitters"
VOTE_CELLS = 3
"""Of each candidate is counted who agrees, who differs, and whom it says little about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What rows of a table are counted by, as far as costs depend on it."""

    kind: str
    place: Place | None = None
    """The column it looks at."""
    in_degree: Link | None = None
    """The key of other entities' rows that it counts; such a feature is shared between entities."""
    direct: bool = True
    """Whether it is that of the row itself, not of its owner row or first sibling."""
    equals: Equals | None = None
    """What it compares that column with."""
    base: Place | None = None
    """What it asks whether that column is near to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What follows from a query."""

    kind: str
    table: str
    sensitivity: int
    """How far one entity, added or removed, moves the answer: in L1, or each score of a choice."""
    draws: int
    mechanisms: tuple[str, ...]
    """What may answer it."""
    additive: bool = False
    """Whether an entity only adds to the counts, and lowers none."""
    monotone: bool = False
    """Whether an entity moves all scores of a choice in the same direction."""
    in_blocks: bool = False
    """Whether it may be asked of a block of rows: what each row of an entity moves is bounded."""
    begins: frozenset[Place] = frozenset()
    """Columns whose domain it begins to look for."""
    looks_at: frozenset[Place] = frozenset()
    """Columns whose values it looks at to find their domain."""
    compares: frozenset[tuple[Place, Equals]] = frozenset()
    """Columns that it compares with what they may be equal to."""
    relates: frozenset[tuple[Place, Place]] = frozenset()
    """Columns of which it asks whether they are near to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A query or feature as the receipt has it, the table it is about, and its place for messages."""

    value: Json
    table: str
    facts: Facts
    where: str

    def text(self, name: str) -> str:
        return text_of(self.value[name], f"{self.where}.{name}")

    def number(self, name: str) -> int:
        return integer_of(self.value[name], f"{self.where}.{name}", least=1)

    def link(self) -> Link:
        return read_link(self.value["link"], f"{self.where}.link")

    def rows_per_entity(self) -> int:
        return self.facts.rows_per_entity(self.table, self.where)

    def columns(self, name: str) -> tuple[str, ...]:
        """A list of columns, each of which has a domain."""
        columns = names_of(self.value[name], f"{self.where}.{name}", least=1)
        for column in columns:
            self.check_domain(column)
        return columns

    def check_domain(self, column: str) -> None:
        if (self.table, column) not in self.facts.domains:
            raise ReceiptError(f"{self.where}: {shown_place((self.table, column))} has no domain in public.domains")


def read_query(value: object, facts: Facts, where: str) -> Query:
    """Read a query of a receipt and derive what it costs."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ReceiptError(f"{where}: unknown kind of query")
    names, read = _KINDS[kind]
    query = fields_of(value, where, ("kind", "table", *names), optional=_OPTIONAL.get(kind, ()))
    table = facts.table_of(query["table"], f"{where}.table")
    return read(_Asked(value=query, table=table, facts=facts, where=where))


def _histogram(asked: _Asked) -> Query:
    counts = one_of(asked.value["counts"], f"{asked.where}.counts", ("rows", "weights", "votes"))
    _check_full_rows(asked, counts)
    features, draws = _axes(asked)
    shared = [feature for feature in features if feature.in_degree is not None]
    first = "present" if counts == "votes" else None
    return Query(
        kind="histogram",
        table=asked.table,
        sensitivity=_moved(asked, counts, shared),
        draws=draws,
        mechanisms=NOISE,
        additive=not shared,
        in_blocks=counts == "rows" and not shared,
        begins=frozenset(f.place for f in features if f.kind in ("magnitude", first) and f.place is not None),
        looks_at=frozenset(f.place for f in features if f.kind in _ON_VALUES and f.place is not None),
        compares=_mapped(features),
    )


def _check_full_rows(asked: _Asked, counts: str) -> None:
    """From how many rows on entities weigh the same; with fewer they weigh less, so the sensitivity is that without."""
    if "full_rows" not in asked.value:
        return
    where = f"{asked.where}.full_rows"
    rows = integer_of(asked.value["full_rows"], where, least=2, most=_MAX_FULL_ROWS)
    if rows & (rows - 1):
        raise ReceiptError(f"{where} is {rows}, which is no power of two")
    if counts != "weights":
        raise ReceiptError(f"{where}: {counts} are counted, but only weights can be in proportion to rows")


def _mapped(features: list[Feature]) -> frozenset[tuple[Place, Equals]]:
    """Which column may be known as a map of which: two columns of the row that are counted together."""
    places = [f.place for f in features if f.kind == "column" and f.direct and f.place is not None]
    return frozenset((place, (MAP, other[1])) for place in places for other in places if place != other)


def _moved(asked: _Asked, counts: str, shared: list[Feature]) -> int:
    """What an entity counts itself, and twice each of its keys that an in-degree counts: docs/proofs/tree.md, 4."""
    if counts == "weights":
        return ENTITY_WEIGHT * (1 + 2 * len(shared))
    if counts == "votes":
        if shared:
            raise ReceiptError(f"{asked.where}: votes are not counted by in-degrees, which other entities move")
        return 1
    if not all(feature.direct for feature in shared):
        raise ReceiptError(f"{asked.where}: rows are not counted by the in-degree of another row: many move with it")
    keys = (asked.facts.rows_per_entity(f.in_degree.table, asked.where) for f in shared if f.in_degree is not None)
    return asked.rows_per_entity() + 2 * sum(keys)


def _sums(asked: _Asked) -> Query:
    features, draws = _axes(asked)
    if any(feature.in_degree is not None for feature in features):
        raise ReceiptError(f"{asked.where}: sums are not taken by in-degrees, which other entities move")
    asked.check_domain(asked.text("column"))
    return _rows_query(asked, sensitivity=asked.rows_per_entity() * COORDINATE, draws=draws)


def _dependence(asked: _Asked) -> Query:
    for side in ("left", "right"):
        asked.columns(side)
    return _rows_query(asked, sensitivity=asked.rows_per_entity() * ROW_SCORE, draws=1)


def _published_split(asked: _Asked) -> Query:
    distance = ROW_DISTANCE * len(asked.columns("columns")) * asked.rows_per_entity()
    return _rows_query(asked, sensitivity=distance, draws=asked.number("rounds"), mechanisms=(AS_PUBLISHED,))


def _rows_query(asked: _Asked, *, sensitivity: int, draws: int, mechanisms: tuple[str, ...] = NOISE) -> Query:
    """A query to which each row of an entity adds its share, in either direction."""
    return Query(
        kind=asked.value["kind"],
        table=asked.table,
        sensitivity=sensitivity,
        draws=draws,
        mechanisms=mechanisms,
        in_blocks=True,
    )


def _heavy_hitters(asked: _Asked) -> Query:
    """Weights of listed values, of which the large ones come out; or votes for values that are only there."""
    weights = one_of(asked.value["counts"], f"{asked.where}.counts", ("weights", "votes")) == "weights"
    if weights != ("values" in asked.value):
        raise ReceiptError(f"{asked.where}: values are listed where weights are counted, and only there")
    return Query(
        kind=_HITTERS,
        table=asked.table,
        sensitivity=ENTITY_WEIGHT if weights else 1,
        draws=asked.number("values") if weights else 1,
        mechanisms=(LAPLACE,) if weights else (FREQUENT,),
        additive=True,
        looks_at=frozenset({(asked.table, asked.text("column"))}),
    )


def _votes(asked: _Asked) -> Query:
    """An entity has one vote for all candidates together, whatever tables they are about."""

    def read(value: object, at: str) -> Feature:
        candidate = fields_of(value, at, ("table", "feature"))
        table = asked.facts.table_of(candidate["table"], f"{at}.table")
        feature = read_feature(candidate["feature"], table, asked.facts, f"{at}.feature")
        if feature.kind not in _COMPARISONS:
            raise ReceiptError(f"{at}: there is no vote on a feature of kind {feature.kind!r}")
        return feature

    candidates = list_of(asked.value["candidates"], f"{asked.where}.candidates", read)
    if not candidates:
        raise ReceiptError(f"{asked.where}: there is no candidate to vote on")
    if asked.table != asked.facts.entity:
        raise ReceiptError(f"{asked.where}: entities vote, but {shown(asked.table)} is not the entity table")
    return Query(
        kind=asked.value["kind"],
        table=asked.table,
        sensitivity=ENTITY_WEIGHT,
        draws=VOTE_CELLS * len(candidates),
        mechanisms=NOISE,
        additive=True,
        compares=frozenset((f.place, f.equals) for f in candidates if f.place is not None and f.equals is not None),
        relates=frozenset((f.place, f.base) for f in candidates if f.place is not None and f.base is not None),
    )


def _choice_of_cap(asked: _Asked) -> Query:
    """An entity lowers each score by 1 or leaves it."""
    return _choice(asked, sensitivity=1, monotone=True)


def _choice_of_split(asked: _Asked) -> Query:
    return _choice(asked, sensitivity=asked.rows_per_entity() * ROW_SCORE, in_blocks=True)


def _choice_by_weight(asked: _Asked) -> Query:
    return _choice(asked, sensitivity=ENTITY_WEIGHT)


def _choice(asked: _Asked, *, sensitivity: int, monotone: bool = False, in_blocks: bool = False) -> Query:
    asked.number("candidates")
    return Query(
        kind=asked.value["kind"],
        table=asked.table,
        sensitivity=sensitivity,
        draws=1,
        mechanisms=CHOICES,
        monotone=monotone,
        in_blocks=in_blocks,
    )


_KINDS: dict[str, tuple[tuple[str, ...], Callable[[_Asked], Query]]] = {
    "histogram": (("counts", "axes"), _histogram),
    "sums": (("axes", "column"), _sums),
    "dependence": (("left", "right"), _dependence),
    _HITTERS: (("column", "counts"), _heavy_hitters),
    "votes on dependencies": (("candidates",), _votes),
    "choice of cap": (("candidates",), _choice_of_cap),
    "choice of column split": (("candidates",), _choice_of_split),
    "choice of pair": (("candidates",), _choice_by_weight),
    "choice of dependency": (("candidates",), _choice_by_weight),
    "published row split": (("columns", "rounds"), _published_split),
}
_OPTIONAL = {"histogram": ("full_rows",), _HITTERS: ("values",)}


# -- features ----------------------------------------------------------------------------------------------------------


def _axes(asked: _Asked) -> tuple[list[Feature], int]:
    """The features of a query's axes, and how many cells their bins make together."""

    def read(value: object, at: str) -> tuple[Feature, int]:
        axis = fields_of(value, at, ("bins", "feature"))
        feature = read_feature(axis["feature"], asked.table, asked.facts, f"{at}.feature")
        return feature, integer_of(axis["bins"], f"{at}.bins", least=1)

    if isinstance(asked.value["axes"], list) and len(asked.value["axes"]) > _MAX_AXES:
        raise ReceiptError(f"{asked.where}: has more than {_MAX_AXES} axes")
    axes = list_of(asked.value["axes"], f"{asked.where}.axes", read)
    return [feature for feature, _ in axes], prod(bins for _, bins in axes)


def read_feature(value: object, table: str, facts: Facts, where: str) -> Feature:
    """Read a feature of the rows of a table, and check that the table has it."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _FEATURES:
        raise ReceiptError(f"{where}: unknown kind of feature")
    names, read = _FEATURES[kind]
    feature = fields_of(value, where, ("kind", *names))
    return read(_Asked(value=feature, table=table, facts=facts, where=where))


def _of_row(asked: _Asked) -> Feature:
    return Feature(kind=asked.value["kind"])


def _of_column(asked: _Asked) -> Feature:
    column = asked.text("column")
    if asked.value["kind"] == "column":
        asked.check_domain(column)
    return Feature(kind=asked.value["kind"], place=(asked.table, column))


def _of_cluster(asked: _Asked) -> Feature:
    asked.columns("columns")
    return Feature(kind="cluster")


def _of_agreement(asked: _Asked) -> Feature:
    equals = read_equals(asked.value["equals"], asked.table, asked.facts.tables, f"{asked.where}.equals")
    return Feature(kind="agreement", place=(asked.table, asked.text("column")), equals=equals)


def _of_nearness(asked: _Asked) -> Feature:
    """How far a date is from another of the row, or of the row so many owners up: of the same entity."""
    base = fields_of(asked.value["base"], f"{asked.where}.base", ("column", "owners"))
    owners = integer_of(base["owners"], f"{asked.where}.base.owners", most=len(asked.facts.tables))
    table = asked.table
    for _ in range(owners):
        table = asked.facts.owner_of(table, asked.where)
    other = (table, text_of(base["column"], f"{asked.where}.base.column"))
    asked.number("days")
    return Feature(kind="nearness", place=(asked.table, asked.text("column")), base=other)


def _of_null_key(asked: _Asked) -> Feature:
    """A key that the row itself holds: to a public table, its owner key, or a reference."""
    _held_key(asked)
    return Feature(kind=asked.value["kind"])


def _of_own_key(asked: _Asked) -> Feature:
    """Whether a key that the row holds references the row above, to which owner keys lead: of the same entity."""
    link, facts = _held_key(asked), asked.facts
    owner = facts.owner_link(asked.table)
    for _ in facts.tables:
        if owner is not None and owner.target == link.target:
            return Feature(kind="own key")
        owner = None if owner is None else facts.owner_link(owner.target)
    raise ReceiptError(f"{asked.where}: {link} leads to no table above {shown(asked.table)}")


def _of_key_block(asked: _Asked) -> Feature:
    """A block of rows by position, which only public rows have for all to know."""
    if (link := _held_key(asked)).target not in asked.facts.public_tables:
        raise ReceiptError(f"{asked.where}: {link} does not lead to a public table")
    return Feature(kind="key block")


def _of_key_slot(asked: _Asked) -> Feature:
    """A row by position: of a public table, or of the entity table if its number of rows is public."""
    link, facts = _held_key(asked), asked.facts
    counted = link.target == facts.entity and link.target in facts.sizes
    if not counted and link.target not in facts.public_tables:
        raise ReceiptError(f"{asked.where}: {link} leads to a table whose number of rows is not public")
    return Feature(kind="key slot")


def _held_key(asked: _Asked) -> Link:
    link, facts = asked.link(), asked.facts
    between = link in facts.references or link in facts.inside or link == facts.owner_link(asked.table)
    known = link.target in facts.public_tables or between
    if link.table != asked.table or not known:
        raise ReceiptError(f"{asked.where}: {link} is no key of {shown(asked.table)} in the receipt")
    return link


def _of_fanout(asked: _Asked) -> Feature:
    """How many rows the row owns: of the same entity."""
    link = asked.link()
    if link.target != asked.table or link != asked.facts.owner_link(link.table):
        raise ReceiptError(f"{asked.where}: {link} is no owner key to {shown(asked.table)}")
    return Feature(kind="fanout")


def _of_activity(asked: _Asked) -> Feature:
    """How many rows the row owns at all levels: owner keys alone lead to them, so all are of the same entity."""
    links = (asked.facts.owner_link(table) for table in asked.facts.tables)
    if all(link is None or link.target != asked.table for link in links):
        raise ReceiptError(f"{asked.where}: no rows are owned by rows of {shown(asked.table)}")
    return Feature(kind="activity")


def _of_in_degree(asked: _Asked) -> Feature:
    """How many keys reference the row: of any entity, or of its own where they stay inside."""
    link = asked.link()
    if link.target == asked.table and link in asked.facts.inside:
        return Feature(kind="in-degree")
    if link.target != asked.table or link not in asked.facts.references:
        raise ReceiptError(f"{asked.where}: {link} is no reference to {shown(asked.table)}")
    return Feature(kind="in-degree", in_degree=link)


def _of_public_rows(asked: _Asked) -> Feature:
    """How many rows of a public table reference the entity: known to all where its key is public."""
    link, facts = asked.link(), asked.facts
    if link.target != asked.table or link.table not in facts.public_tables or asked.table != facts.entity:
        raise ReceiptError(f"{asked.where}: {link} is no key of a public table to the entity table")
    if all(name != asked.table for name, _ in facts.public_keys):
        raise ReceiptError(f"{asked.where}: counts rows by a key of {shown(asked.table)} that is not public")
    return Feature(kind="public rows")


def _of_owner(asked: _Asked) -> Feature:
    owner = asked.facts.owner_of(asked.table, asked.where)
    return replace(read_feature(asked.value["feature"], owner, asked.facts, f"{asked.where}.feature"), direct=False)


def _of_first(asked: _Asked) -> Feature:
    """Of the first row with the same owner row, which is of the same entity."""
    asked.facts.owner_of(asked.table, asked.where)
    inner = read_feature(asked.value["feature"], asked.table, asked.facts, f"{asked.where}.feature")
    return replace(inner, direct=False)


def _of_rank(asked: _Asked) -> Feature:
    asked.facts.owner_of(asked.table, asked.where)
    return Feature(kind="rank")


_COLUMN = (("column",), _of_column)
_FEATURES: dict[str, tuple[tuple[str, ...], Callable[[_Asked], Feature]]] = {
    "column": _COLUMN,
    "magnitude": _COLUMN,
    "step": _COLUMN,
    "cell": _COLUMN,
    "present": _COLUMN,
    "cluster": (("columns",), _of_cluster),
    "agreement": (("column", "equals"), _of_agreement),
    "nearness": (("column", "base", "days"), _of_nearness),
    "null key": (("link",), _of_null_key),
    "own key": (("link",), _of_own_key),
    "key block": (("link",), _of_key_block),
    "key slot": (("link",), _of_key_slot),
    "fanout": (("link",), _of_fanout),
    "activity": ((), _of_activity),
    "in-degree": (("link",), _of_in_degree),
    "public rows": (("link",), _of_public_rows),
    "owner": (("feature",), _of_owner),
    "first": (("feature",), _of_first),
    "rank": ((), _of_rank),
    "entity rows": ((), _of_row),
    "part": ((), _of_row),
}
