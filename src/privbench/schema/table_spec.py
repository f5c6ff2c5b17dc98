"""The words under `tables:` in a spec file: a table, its keys, its columns and what is public of their values.

Plain checked values; `spec.Spec` puts them together and `spec_names` checks that the names in them exist.
"""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    Tag,
    field_validator,
    model_serializer,
    model_validator,
)

from privbench.errors import SchemaError
from privbench.schema.computed import ComputedOrigin, ExpressionText
from privbench.schema.determined import map_expression
from privbench.schema.domain import MAX_CELLS, Bins, Domain, Origin, Range, Scalar, Serial, Text, Values
from privbench.schema.expression import MAX_TEXT, Expression, parse_expression
from privbench.schema.relative import PREVIOUS
from privbench.schema.release import Digest
from privbench.schema.tables import Column, ForeignKey, Index, Table
from privbench.schema.types import SqlType, parse_type

LONGEST_NAME = 1000
MOST_IN_KEY = 64
MOST_KEYS = 1000
MOST_COLUMNS = 10_000
MOST_MADE_UP = 1_000_000

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_IN_KEY)]
TwoNames = tuple[Name, Name]

DOMAINS: dict[str, type[BaseModel]] = {"range": Range, "bins": Bins, "values": Values, "text": Text, "serial": Serial}
"""Each kind of domain by the word that marks it."""


def domain_tag(kind: str) -> str:
    """Name the branch of a domain in pydantic's paths; no spec has such a key."""
    return f"<{kind}>"


def _tag(value: Any) -> str | None:
    kinds = (k for k, c in DOMAINS.items() if isinstance(value, c) or (isinstance(value, dict) and k in value))
    kind = next(kinds, None)
    return None if kind is None else domain_tag(kind)


AnyDomain = Annotated[
    Annotated[Range, Tag("<range>")]
    | Annotated[Bins, Tag("<bins>")]
    | Annotated[Values, Tag("<values>")]
    | Annotated[Text, Tag("<text>")]
    | Annotated[Serial, Tag("<serial>")],
    Discriminator(_tag),
]


class Words(BaseModel):
    """A mapping of the spec file: its words are fixed and its values do not change."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)


PRIVATE = Origin.PRIVATE.value
"""What stands in a spec file for a domain that is to be found with budget."""


class ColumnSpec(Words):
    """One column: its SQL type, whether it may be NULL, and the public domain of its values.

    Origin PRIVATE without a domain is what the file writes as `domain: private`: to be found with budget. With
    `relative_to` the domain is that of the differences; `first` is that of the values from which a sequence starts,
    or, with `start`, of their differences from that column.
    `release` names the earlier release that found the domain, or what the column equals. `source_type` is the type in
    the source where `type` is another one; a dropped column that has it was left out since no type here holds its
    values. `quoted` says that its name has capital letters by quotes, and keeps them in every database.
    """

    type: Name
    null: StrictBool = True
    domain: AnyDomain | None = None
    origin: Annotated[Origin, Field(validation_alias="from", serialization_alias="from")] = Origin.DECLARED
    drop: StrictBool = False
    computed: ExpressionText | None = None
    computed_origin: Annotated[
        ComputedOrigin, Field(validation_alias="computed_from", serialization_alias="computed_from")
    ] = ComputedOrigin.DECLARED
    determined_by: Name | None = None
    map: Annotated[tuple[tuple[Scalar | None, Scalar | None], ...], Field(max_length=MAX_CELLS + 1)] | None = None
    map_origin: Annotated[ComputedOrigin, Field(validation_alias="map_from", serialization_alias="map_from")] = (
        ComputedOrigin.DECLARED
    )
    relative_to: Name | None = None
    relative_origin: Annotated[
        ComputedOrigin, Field(validation_alias="relative_from", serialization_alias="relative_from")
    ] = ComputedOrigin.DECLARED
    first: AnyDomain | None = None
    start: Name | None = None
    release: Digest | None = None
    source_type: Name | None = None
    quoted: StrictBool = False

    @model_validator(mode="before")
    @classmethod
    def _private(cls, words: Any) -> Any:
        """Read `domain: private`."""
        if not isinstance(words, dict) or words.get("domain") != PRIVATE:
            return words
        if words.get("from", PRIVATE) != PRIVATE:
            raise ValueError("`domain: private` is found with budget: take `from` out")
        return {**words, "domain": None, "from": PRIVATE}

    @model_validator(mode="after")
    def _without_domain(self) -> "ColumnSpec":
        if self.computed is not None and (self.domain is not None or self.origin is Origin.PRIVATE):
            raise ValueError("computed and domain exclude each other: keep one of them")
        return self

    @model_validator(mode="after")
    def _determined(self) -> "ColumnSpec":
        if self.determined_by is None and (self.map is not None or self.map_origin is not ComputedOrigin.DECLARED):
            raise ValueError("`map` and `map_from` have no meaning without `determined_by`: take them out")
        if self.map is None and self.map_origin is not ComputedOrigin.DECLARED:
            raise ValueError("`map_from` has no meaning without `map`: take it out")
        if self.determined_by is not None and self.computed is not None:
            raise ValueError("computed and determined_by exclude each other: keep one of them")
        if self.map is not None and len({key for key, _ in self.map}) < len(self.map):
            raise ValueError("`map` has a value twice: a value has one other")
        return self

    @model_validator(mode="after")
    def _with_base(self) -> "ColumnSpec":
        if self.relative_to != PREVIOUS and (self.first is not None or self.start is not None):
            raise ValueError("`first` and `start` have no meaning without `relative_to: previous`: take them out")
        if self.relative_to is not None and (self.computed is not None or self.determined_by is not None):
            raise ValueError("relative_to excludes computed and determined_by: keep one of them")
        if self.relative_to is None or self.drop:
            return self
        if self.relative_to == PREVIOUS and (self.first is None or self.domain is None):
            raise ValueError("`relative_to: previous` needs `domain`, of the steps, and `first`, of first values")
        if isinstance(self.domain, (Text, Serial)) or isinstance(self.first, (Text, Serial)):
            raise ValueError("differences are numbers: write `range`, `bins` or `values`")
        return self

    @model_validator(mode="after")
    def _with_release(self) -> "ColumnSpec":
        if self.computed is None and self.computed_origin is not ComputedOrigin.DECLARED:
            raise ValueError("`computed_from` has no meaning without `computed`: take it out")
        if self.relative_to is None and self.relative_origin is not ComputedOrigin.DECLARED:
            raise ValueError("`relative_from` has no meaning without `relative_to`: take it out")
        if self.relative_origin in (ComputedOrigin.SCHEMA, ComputedOrigin.DATA):
            raise ValueError("`relative_from` is `declared`, `found` or `earlier release`")
        if self.origin is Origin.EARLIER and self.domain is None:
            raise ValueError("`from: earlier release` has no meaning without a domain: take it out")
        found = (self.computed_origin, self.relative_origin, self.map_origin)
        earlier = self.origin is Origin.EARLIER or ComputedOrigin.EARLIER in found
        if earlier and self.release is None:
            raise ValueError("`earlier release` needs `release`, the digest of its receipt, as `releases` lists it")
        if self.release is not None and not earlier:
            raise ValueError(
                "`release` belongs to `from`, `computed_from` or `relative_from`, with the word `earlier release`"
            )
        return self

    def sql_type(self, where: str) -> SqlType:
        """Read the type. Raises SchemaError naming `where`."""
        try:
            return parse_type(self.type)
        except SchemaError as error:
            raise SchemaError(f"{where}: {error}") from None


class IndexSpec(Words):
    """A secondary index."""

    columns: Names
    unique: StrictBool = False


class ForeignKeySpec(Words):
    """A foreign key. `inside` says that it references rows of the same entity, `from` who says so."""

    columns: Names
    table: Name
    references: Names
    inside: StrictBool = False
    origin: Annotated[Origin, Field(validation_alias="from", serialization_alias="from")] = Origin.DECLARED

    @model_validator(mode="after")
    def _from_with_inside(self) -> "ForeignKeySpec":
        if self.origin not in (Origin.DECLARED, Origin.SCHEMA, Origin.DATA):
            raise ValueError("`from` can be `declared`, `schema` or `data` here")
        if self.origin is not Origin.DECLARED and not self.inside:
            raise ValueError("`from` has no meaning without `inside`: take it out")
        return self


class RuleSpec(Words):
    """A rule that every row keeps. In the file it is its expression alone, unless there is more to say of it.

    `left_out` says why a CHECK of the source is not kept; such a rule is only listed.
    """

    check: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    origin: Annotated[Origin, Field(validation_alias="from", serialization_alias="from")] = Origin.DECLARED
    left_out: Name | None = None

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, words: Any) -> Any:
        """Read a rule that is only its expression."""
        return {"check": words} if isinstance(words, str) else words

    @model_validator(mode="after")
    def _known_origin(self) -> "RuleSpec":
        if self.origin not in (Origin.DECLARED, Origin.DATA):
            raise ValueError("a rule is `from: declared` or `from: data`")
        return self

    @model_serializer(mode="wrap")
    def _written(self, write: Callable[["RuleSpec"], dict[str, Any]]) -> dict[str, Any] | str:
        return self.check if self == RuleSpec(check=self.check) else write(self)

    def expression(self, where: str) -> Expression:
        """Parse the rule. Raises SpecError naming `where`."""
        return parse_expression(self.check, where=where, checked=self.left_out is None)


class ClusterSpec(Words):
    """A column whose equal or neighbouring values lie together. In the file it is its name alone, if all rows do.

    `share` of the rows lie in the order of the column, the others after them. With `run` those in order are cut into
    runs of about so many rows, and the runs lie in any order.
    """

    column: Name
    share: Annotated[StrictInt | StrictFloat, Field(gt=0, le=1)] = 1
    run: Annotated[StrictInt, Field(gt=1, le=10**9)] | None = None
    origin: Annotated[Origin, Field(validation_alias="from", serialization_alias="from")] = Origin.DECLARED

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, words: Any) -> Any:
        """Read a column that is only its name."""
        return {"column": words} if isinstance(words, str) else words

    @model_validator(mode="after")
    def _known_origin(self) -> "ClusterSpec":
        if self.origin not in (Origin.DECLARED, Origin.SCHEMA, Origin.DATA):
            raise ValueError("`from` can be `declared`, `schema` or `data` here")
        return self

    @model_serializer(mode="wrap")
    def _written(self, write: Callable[["ClusterSpec"], dict[str, Any]]) -> dict[str, Any] | str:
        return self.column if self == ClusterSpec(column=self.column) else write(self)


class TableSpec(Words):
    """One table. Without `public`, `made_up`, `drop` and `owned_by` its rows belong to entities through its owner key.

    `made_up` is how many rows of it are made up from the schema; its real rows are not read. `quoted` is as for
    columns.
    """

    key: Annotated[tuple[Name, ...], Field(max_length=MOST_IN_KEY)] = ()
    unique: Annotated[tuple[Names, ...], Field(max_length=MOST_KEYS)] = ()
    indexes: dict[Name, IndexSpec] = Field(default_factory=dict, max_length=MOST_KEYS)
    foreign_keys: Annotated[tuple[ForeignKeySpec, ...], Field(max_length=MOST_KEYS)] = ()
    owner: Names | None = None
    rows_per_entity: Annotated[StrictInt, Field(gt=0, le=10**9)] | None = None
    budget: Annotated[StrictInt | StrictFloat, Field(gt=0, le=1000)] | None = None
    order: Names | None = None
    numbered_by: Name | None = None
    clustered_by: Annotated[tuple[ClusterSpec, ...], Field(max_length=MOST_IN_KEY)] = ()
    pairs: Annotated[tuple[TwoNames, ...], Field(max_length=MOST_KEYS)] = ()
    rules: Annotated[tuple[RuleSpec, ...], Field(max_length=MOST_KEYS)] = ()
    public: StrictBool = False
    made_up: Annotated[StrictInt, Field(gt=0, le=MOST_MADE_UP)] | None = None
    drop: StrictBool = False
    owned_by: Name | None = None
    list_of: Names | None = None
    quoted: StrictBool = False
    columns: dict[Name, ColumnSpec] = Field(default_factory=dict, max_length=MOST_COLUMNS)

    @field_validator("budget")
    @classmethod
    def _short(cls, budget: float | None) -> float | None:
        """Refuse more digits than anybody needs: verifiers compare costs with them, and forgers could make them fit."""
        if budget is not None and float(f"{budget:.3g}") != budget:
            raise ValueError(f"budget is {budget}: it has at most three digits. Write {budget:.3g}")
        return budget

    @model_validator(mode="after")
    def _one_role(self) -> "TableSpec":
        words = [word for word in ("public", "made_up", "drop", "owned_by", "owner") if getattr(self, word)]
        nobodys = self.is_public or self.drop
        if len(words) > 1:
            raise ValueError(f"{' and '.join(words)} exclude each other: keep one of them")
        if self.rows_per_entity and nobodys:
            raise ValueError(f"rows_per_entity has no meaning beside {words[0]}: take it out")
        if self.budget and nobodys:
            raise ValueError(f"budget has no meaning beside {words[0]}: take it out")
        if self.order and nobodys:
            raise ValueError(f"order has no meaning beside {words[0]}: take it out")
        if self.numbered_by and nobodys:
            raise ValueError(f"numbered_by has no meaning beside {words[0]}: take it out")
        if self.clustered_by and nobodys:
            raise ValueError(f"clustered_by has no meaning beside {words[0]}: take it out")
        if self.pairs and nobodys:
            raise ValueError(f"pairs have no meaning beside {words[0]}: take them out")
        if self.list_of and (nobodys or self.owned_by):
            raise ValueError(f"list_of and {words[0]} exclude each other: keep one of them")
        if not self.columns and not self.drop:
            raise ValueError("a table needs `columns`, at least one (or `drop: true`)")
        return self

    @property
    def is_public(self) -> bool:
        """Whether the rows that are published belong to nobody: copied as they are, or made up."""
        return self.public or self.made_up is not None

    def table(self, name: str) -> Table:
        """Make the table as declared. A dropped column keeps its place, but its type is not read."""
        return Table(
            name=name,
            columns=tuple(_column(name, c, spec) for c, spec in self.columns.items()),
            primary_key=self.key,
            foreign_keys=tuple(
                ForeignKey(columns=k.columns, table=k.table, references=k.references, inside=k.inside)
                for k in self.foreign_keys
            ),
            uniques=self.unique,
            indexes=tuple(Index(name=n, columns=i.columns, unique=i.unique) for n, i in self.indexes.items()),
            checks=tuple(r.expression(f"tables.{name}.rules") for r in self.rules if r.left_out is None),
            list_of=self.list_of or (),
            quoted=self.quoted,
        )


def _column(table: str, name: str, spec: ColumnSpec) -> Column:
    kind = parse_type("VARCHAR") if spec.drop else spec.sql_type(f"{table}.{name}")
    implied: Domain | None = spec.domain if spec.origin is Origin.SCHEMA else None
    return Column(
        name=name,
        type=kind,
        nullable=spec.null,
        implied=implied,
        computed=spec.computed if spec.map is None else map_expression(spec.determined_by or "", spec.map),
        determined_by=spec.determined_by,
        generated=spec.computed_origin is ComputedOrigin.SCHEMA,
        relative_to=spec.relative_to,
        start=spec.start,
        quoted=spec.quoted,
    )
