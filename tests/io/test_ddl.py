"""Scripts of several dialects: what they declare must come out the same, and what they cannot must be named."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.errors import SchemaError
from privbench.io.ddl import parse_ddl
from privbench.io.render import Dialect, omitted_keys, render_ddl
from privbench.schema.domain import Values
from privbench.schema.tables import Column, ForeignKey, Index, Schema, Table
from privbench.schema.types import Kind, parse_type

MYSQL = """
-- a dump; with a semicolon
SET FOREIGN_KEY_CHECKS=0;
DROP TABLE IF EXISTS `film`;
CREATE TABLE `lang``uage` (`id` tinyint(3) unsigned NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`)) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS `film` (
  `film_id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `title` varchar(128) CHARACTER SET utf8 DEFAULT NULL COMMENT 'first; second',
  `rating` enum('G','PG-13','O''K') DEFAULT 'G',
  `seen` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  `made` year(4), `cost` decimal(5,2) unsigned, `text` mediumtext, `weight` float,
  `language_id` tinyint(3) unsigned NOT NULL,
  PRIMARY KEY (`film_id`), UNIQUE KEY `u_title` (`title`), KEY `idx_cost` (`cost`,`made` DESC),
  FULLTEXT KEY `words` (`text`),
  CONSTRAINT `fk` FOREIGN KEY (`language_id`) REFERENCES `lang``uage` (`id`) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8;
INSERT INTO `film` VALUES (1,'CREATE TABLE x (y int);');
ALTER TABLE `film` ADD KEY `idx_made` (`made`);
"""
POSTGRES = """
SET client_encoding = 'UTF8';
SELECT pg_catalog.set_config('search_path', '', false);
CREATE TYPE public.mood AS ENUM ('sad', 'ok');
CREATE SEQUENCE public.s START WITH 1;
CREATE TABLE public.owner (id integer NOT NULL, part smallint NOT NULL, mail character varying(45));
CREATE TABLE public.thing (
  id integer DEFAULT nextval('public.s'::regclass) NOT NULL,
  owner_id integer, part smallint, "we""ird" character(3), feels public.mood,
  at timestamp without time zone DEFAULT now() NOT NULL, instant timestamp with time zone,
  price numeric(5,2), ratio double precision, small real, on_sale boolean, key uuid,
  CONSTRAINT price CHECK (((price >= 0.00) AND (price < (2)::numeric)))
);
ALTER TABLE public.thing OWNER TO postgres;
ALTER TABLE ONLY public.owner ADD CONSTRAINT owner_pkey PRIMARY KEY (id, part);
ALTER TABLE ONLY public.owner ADD CONSTRAINT owner_mail UNIQUE (mail);
ALTER TABLE ONLY public.thing ADD CONSTRAINT thing_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.thing
    ADD CONSTRAINT fk FOREIGN KEY (owner_id, part) REFERENCES public.owner(id, part) ON UPDATE CASCADE;
ALTER TABLE public.thing ALTER COLUMN price SET NOT NULL;
CREATE UNIQUE INDEX thing_key ON public.thing USING btree (key, at DESC);
CREATE INDEX lower_weird ON public.thing USING btree (lower("we""ird"));
CREATE INDEX some ON public.thing USING btree (at) WHERE (price > 1.00);
COMMENT ON TABLE public.thing IS 'x';
"""
SQLITE = """
CREATE TABLE [group] ("id" INTEGER PRIMARY KEY AUTOINCREMENT, name NVARCHAR(20) NOT NULL COLLATE NOCASE,
  boss INT REFERENCES [Group]);
CREATE TABLE "order" ("select" INTEGER NOT NULL, "from" TEXT UNIQUE, gid INT REFERENCES [group] (ID) ON DELETE SET NULL,
  PRIMARY KEY ("select", gid)) WITHOUT ROWID;
"""


def _table(text: str, name: str) -> Table:
    return parse_ddl(text, where="schema.sql").table(name)


def _types(table: Table) -> dict[str, str]:
    return {c.name: c.type.sql for c in table.columns}


def test_columns_may_be_called_as_words_of_mysql() -> None:
    plane = _table(
        "CREATE TABLE plane (unsigned BOOLEAN, engine TEXT CHECK (engine = 'jet'), seen TIMESTAMPTZ, made TIMESTAMP);",
        "plane",
    )
    assert _types(plane)["seen"] == "TIMESTAMPTZ"
    plane = _table("CREATE TABLE plane (seen TIMESTAMP, engine INT) ENGINE=InnoDB;", "plane")
    assert _types(plane)["seen"] == "TIMESTAMP"


def test_mysql() -> None:
    film = _table(MYSQL, "film")
    assert _types(film) == {
        "film_id": "UINTEGER",
        "title": "VARCHAR(128)",
        "rating": "ENUM('G', 'PG-13', 'O''K')",
        "seen": "TIMESTAMP",
        "made": "SMALLINT",
        "cost": "DECIMAL(5,2)",
        "text": "VARCHAR",
        "weight": "REAL",
        "language_id": "UTINYINT",
    }
    assert [c.name for c in film.columns if not c.nullable] == ["film_id", "seen", "language_id"]
    assert film.column("rating").implied == Values(values=("G", "PG-13", "O'K"))
    assert film.primary_key == ("film_id",)
    assert film.uniques == (("title",),)
    assert film.indexes == (
        Index(name="idx_cost", columns=("cost", "made")),
        Index(name="idx_made", columns=("made",)),
    )
    assert film.foreign_keys == (ForeignKey(columns=("language_id",), table="lang`uage", references=("id",)),)


def test_postgres() -> None:
    thing = _table(POSTGRES, "thing")
    assert _types(thing) == {
        "id": "INTEGER",
        "owner_id": "INTEGER",
        "part": "SMALLINT",
        'we"ird': "CHAR(3)",
        "feels": "ENUM('sad', 'ok')",
        "at": "TIMESTAMP",
        "instant": "TIMESTAMPTZ",
        "price": "DECIMAL(5,2)",
        "ratio": "DOUBLE",
        "small": "REAL",
        "on_sale": "BOOLEAN",
        "key": "UUID",
    }
    assert [c.name for c in thing.columns if not c.nullable] == ["id", "at", "price"]
    assert thing.column("feels").implied == Values(values=("sad", "ok"))
    assert thing.column("on_sale").implied == Values(values=(False, True))
    assert thing.primary_key == ("id",)
    assert thing.foreign_keys == (ForeignKey(columns=("owner_id", "part"), table="owner", references=("id", "part")),)
    assert thing.indexes == (Index(name="thing_key", columns=("key", "at"), unique=True),)
    assert _table(POSTGRES, "owner").keys == (("id", "part"), ("mail",))


def test_sqlite() -> None:
    group, order = _table(SQLITE, "group"), _table(SQLITE, "order")
    assert group.foreign_keys == (ForeignKey(columns=("boss",), table="group", references=("id",)),)
    assert not group.column("name").nullable
    assert order.primary_key == ("select", "gid")
    assert order.uniques == (("from",),)
    assert order.foreign_keys == (ForeignKey(columns=("gid",), table="group", references=("id",)),)


@pytest.mark.parametrize(
    "declared", ["a INT REFERENCES p", "a INT REFERENCES p (k)", "a INT, FOREIGN KEY (A) REFERENCES P (K)"]
)
def test_a_reference_with_or_without_columns(declared: str) -> None:
    table = _table(f"CREATE TABLE p (k INT PRIMARY KEY); CREATE TABLE t ({declared})", "t")
    assert table.foreign_keys == (ForeignKey(columns=("a",), table="p", references=("k",)),)


def test_a_unique_index_that_a_foreign_key_needs_is_a_constraint() -> None:
    text = "CREATE TABLE p (k INT); CREATE TABLE t (a INT REFERENCES p (k)); CREATE UNIQUE INDEX i ON p (k)"
    assert _table(text, "p").uniques == (("k",),)
    assert _table(text, "p").indexes == ()


@pytest.mark.parametrize("kind", ["INT4MULTIRANGE", "mood", "mood[]", "INT[][]"])
def test_a_type_without_codec_is_other(kind: str) -> None:
    assert _table(f"CREATE TABLE t (a {kind})", "t").column("a").type.kind is Kind.OTHER


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no CREATE TABLE"),
        ("SELECT 1", "no CREATE TABLE"),
        ("CREATE TABLE t (a INT", "schema.sql"),
        ("CREATE TABLE t (a INT); CREATE TABLE t (a INT)", "declared twice"),
        ("CREATE TABLE t (a)", r"t\.a: has no type"),
        ("CREATE TABLE t AS SELECT 1 AS a", "lists no columns"),
        ("CREATE TABLE t (a INT REFERENCES ghost)", r"t\.a: references table ghost"),
        ("CREATE TABLE p (k INT); CREATE TABLE t (a INT REFERENCES p)", "no primary key"),
        ("CREATE TABLE p (k INT); CREATE TABLE t (a INT REFERENCES p (k))", "neither a primary key nor UNIQUE"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (ghost))", r"t\.ghost"),
        ("CREATE INDEX i ON ghost (a)", "ghost"),
        ("CREATE TABLE t (a INT); ALTER TABLE ghost ADD PRIMARY KEY (a)", "ghost"),
        ("CREATE TABLE t (a INT); ALTER TABLE t ADD CONSTRAINT banana", "schema.sql"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SchemaError, match=words):
        parse_ddl(text, where="schema.sql")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("dialect", list(Dialect))
def test_rendered_schemas_read_back(dialect: Dialect, schema: Schema) -> None:
    back = parse_ddl(render_ddl(schema, dialect), where="schema.sql")
    for table in schema.tables:
        twin = back.table(table.name)
        left_out = [k for name, k in omitted_keys(schema, dialect) if name == table.name]
        assert set(twin.foreign_keys) == set(table.foreign_keys) - set(left_out)
        assert (twin.primary_key, twin.uniques, twin.indexes) == (table.primary_key, table.uniques, table.indexes)
        assert [c.nullable for c in twin.columns] == [c.nullable for c in table.columns]
        if dialect in (Dialect.DUCKDB, Dialect.SQLITE):
            assert _types(twin) == _types(table)


def test_duckdb_goes_without_cycles_self_references_and_mixed_types() -> None:
    text = """CREATE TABLE a (k INT PRIMARY KEY, b INT REFERENCES b);
      CREATE TABLE b (k INT PRIMARY KEY, a INT REFERENCES a);
      CREATE TABLE c (k INT PRIMARY KEY, c INT REFERENCES c, a BIGINT REFERENCES a, b INT REFERENCES b)"""
    schema = parse_ddl(text, where="test")
    left_out = [(name, str(key)) for name, key in omitted_keys(schema, Dialect.DUCKDB)]
    assert left_out == [("a", "(b) -> b(k)"), ("c", "(c) -> c(k)"), ("c", "(a) -> a(k)")]
    assert omitted_keys(schema, Dialect.ANSI) == ()
    assert render_ddl(schema, Dialect.ANSI).count("ALTER TABLE") == 1


def test_a_nul_in_a_name_is_refused() -> None:
    column = Column(name="a\0", type=parse_type("DATE"))
    with pytest.raises(SchemaError, match="NUL"):
        render_ddl(Schema(tables=(Table(name="t", columns=(column,)),)))


names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(max_examples=60)
@given(
    table=names,
    columns=st.lists(names, min_size=1, max_size=4, unique_by=str.casefold),
    dialect=st.sampled_from(Dialect),
)
def test_any_name_survives_quoting(table: str, columns: list[str], dialect: Dialect) -> None:
    made = Table(
        name=table,
        columns=tuple(Column(name=c, type=parse_type("DATE"), nullable=False, quoted=c != c.lower()) for c in columns),
        primary_key=tuple(columns),
        quoted=table != table.lower(),
    )
    assert parse_ddl(render_ddl(Schema(tables=(made,)), dialect), where="test").tables == (made,)
