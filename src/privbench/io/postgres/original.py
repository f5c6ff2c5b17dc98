"""The DDL of a PostgreSQL database, word by word: what pg_dump would write of it, object by object.

PostgreSQL writes most definitions itself; the rest is put together here. A UNIQUE index on part of the rows, or on
expressions, becomes one that is not unique, since no row is made with it in mind. Triggers, policies, rules, foreign
tables and exclusion constraints are left out, and listed; owners and rights are nobody's business but the target's.
"""

from collections.abc import Iterable, Iterator

from privbench.io.names import quote_sql
from privbench.io.postgres.catalogue import Catalogue, Row, Stored, StoredColumn, quoted
from privbench.io.postgres.schema import is_foreign_key, is_key, lets_one_null, plain_indexes
from privbench.schema.original import LeftOut, OriginalDdl, Phase, SourceDialect, Statement, TableDefinition, names_word
from privbench.schema.tables import Place, Schema

_KEYS = {"p": "primary key", "u": "unique", "f": "foreign key", "c": "check", "x": "exclusion"}
_STORAGE = {"p": "PLAIN", "e": "EXTERNAL", "m": "MAIN", "x": "EXTENDED"}
_NOT_UNIQUE = "made as an index that is not unique: rows are not made with it in mind"
_NOT_MADE = "is not made in a synthetic database"
_PUBLIC = "public"


def original_ddl(catalogue: Catalogue, schema: Schema) -> OriginalDdl:
    """Write down every object; `schema` is ours of the same catalogue."""
    made = _Ddl(catalogue, schema)
    return OriginalDdl.of_source(
        dialect=SourceDialect.POSTGRES,
        tables={name: made.table(table) for name, table in catalogue.tables.items()},
        statements=tuple(made.statements()),
        left_out=tuple(made.left_out()),
    )


class _Ddl:
    def __init__(self, catalogue: Catalogue, schema: Schema) -> None:
        self._catalogue = catalogue
        self._schema = schema
        self._functions = {row["oid"]: row for row in catalogue.functions}
        self._behind = {c["index_oid"] for c in catalogue.constraints if c["kind"] in ("p", "u", "x")}
        self._views = {o: r for o, r in catalogue.relations.items() if r["kind"] in ("v", "m")}

    def table(self, table: Stored) -> TableDefinition:
        row = table.row
        options = f"WITH ({row['options']})" if row["options"] else ""
        partitioned = f"PARTITION BY {row['partition_key']}" if row["partition_key"] else ""
        return TableDefinition(
            name=table.quoted,
            columns={name: _column(column) for name, column in table.columns.items()},
            before="UNLOGGED" if row["persistence"] == "u" else "",
            after=" ".join(word for word in (partitioned, options) if word),
            generated=tuple(name for name, column in table.columns.items() if column.row["generated"]),
            sequences=dict(self._numbering(table)),
        )

    def _numbering(self, table: Stored) -> Iterator[tuple[str, str]]:
        """Each column that a sequence numbers, with the sequence."""
        oid = table.row["oid"]
        for row in self._catalogue.sequences:
            places = [(row["table_oid"], row["column"])] if row["owned"] == "i" else map(tuple, row["users"])
            for place in places:
                if place[0] == oid:
                    yield from ((name, quoted(row["nspname"], row["name"])) for name in table.names([place[1]]))

    def statements(self) -> Iterator[Statement]:
        """Everything besides tables, in an order that works."""
        yield from self._schemas()
        yield from self._types()
        yield from self._sequences()
        yield from self._needed_functions()
        yield from self._partitions()
        yield from self._constraints(("p", "u"))
        yield from self._constraints(("c", "f"))
        yield from self._sequence_owners()
        yield from self._column_options()
        yield from self._made_views()
        yield from self._indexes()
        yield from self._statistics()
        yield from self._comments()

    def left_out(self) -> Iterator[LeftOut]:
        """What no synthetic database gets."""
        catalogue = self._catalogue
        for row in catalogue.others:
            if row["kind"] in ("trigger", "policy", "rule") and row["table_oid"] in catalogue.by_oid:
                name = f"{catalogue.by_oid[row['table_oid']].name}.{row['name']}"
                yield LeftOut(kind=row["kind"], name=name, reason=_NOT_MADE)
        for row in catalogue.relations.values():
            if row["kind"] == "f":
                name = catalogue.called(row["nspname"], row["relname"])
                yield LeftOut(kind="foreign table", name=name, reason="its rows are in another database")
        for row in catalogue.constraints:
            if row["table_oid"] in catalogue.by_oid and not row["inherited"] and not self._is_kept(row):
                yield LeftOut(kind=_KEYS[row["kind"]], name=self._constraint_name(row), reason=_NOT_MADE)
        for index in catalogue.indexes:
            if self._loses_unique(index):
                yield LeftOut(kind="unique index", name=self._index_name(index), reason=_NOT_UNIQUE)

    def _schemas(self) -> Iterator[Statement]:
        for row in self._catalogue.others:
            if row["kind"] == "schema" and row["name"] != _PUBLIC:
                yield _before("schema", row["name"], f"CREATE SCHEMA IF NOT EXISTS {quote_sql(row['name'])}")
        for row in self._catalogue.others:
            if row["kind"] == "extension":
                where = f"WITH SCHEMA {quote_sql(row['nspname'])}"
                yield _before(
                    "extension", row["name"], f"CREATE EXTENSION IF NOT EXISTS {quote_sql(row['name'])} {where}"
                )

    def _types(self) -> Iterator[Statement]:
        for row in self._catalogue.types.values():
            if not row["declared"]:
                continue
            name, called = quoted(row["nspname"], row["name"]), self._catalogue.called(row["nspname"], row["name"])
            if row["kind"] == "e":
                yield _before("type", called, f"CREATE TYPE {name} AS ENUM ({', '.join(map(_literal, row['labels']))})")
            elif row["kind"] == "c":
                yield _before("type", called, f"CREATE TYPE {name} AS ({', '.join(row['attributes'])})")
            elif row["kind"] == "d":
                yield _before("domain", called, f"CREATE DOMAIN {name} AS {_domain(row)}")

    def _sequences(self) -> Iterator[Statement]:
        for row in self._catalogue.sequences:
            if row["owned"] == "i":  # made with its identity column
                continue
            words = f"AS {row['type']} {_counting(row)}"
            name = quoted(row["nspname"], row["name"])
            yield _before("sequence", self._called(row), f"CREATE SEQUENCE {name} {words}")

    def _sequence_owners(self) -> Iterator[Statement]:
        for row in self._catalogue.sequences:
            table = self._catalogue.by_oid.get(row["table_oid"] or 0)
            if row["owned"] != "a" or table is None:
                continue
            for column in table.names([row["column"]]):
                sql = (
                    f"ALTER SEQUENCE {quoted(row['nspname'], row['name'])} OWNED BY {table.quoted}.{quote_sql(column)}"
                )
                needs = (f"sequence {self._called(row)}",)
                yield _after("sequence owner", self._called(row), sql, [(table.name, column)], needs=needs)

    def _needed_functions(self) -> Iterator[Statement]:
        """Functions that a default, an index, a view, a CHECK or a domain calls."""
        used = {use["used"] for use in self._catalogue.uses if use["kind"] == "pg_proc"}
        for oid, row in self._functions.items():
            if oid in used:
                yield _before("function", self._function_name(row), row["definition"].rstrip())

    def _partitions(self) -> Iterator[Statement]:
        roots = {oid: table for oid, table in self._catalogue.by_oid.items() if table.row["kind"] == "p"}
        waiting = [
            row for row in self._catalogue.relations.values() if row["is_partition"] and row["kind"] in ("r", "p")
        ]
        parents: dict[int, tuple[str, tuple[str, ...]]] = {oid: (table.name, ()) for oid, table in roots.items()}
        while ready := [row for row in waiting if row["parent"] in parents]:
            for row in ready:
                root, needs = parents[row["parent"]]
                yield self._partition(row, root, needs)
                parents[row["oid"]] = (root, (f"partition {self._relation(row)}",))
            waiting = [row for row in waiting if row["oid"] not in parents]

    def _partition(self, row: Row, root: str, needs: tuple[str, ...]) -> Statement:
        parent = self._catalogue.relations[row["parent"]]
        words = [
            f"CREATE {'UNLOGGED ' if row['persistence'] == 'u' else ''}TABLE {quoted(row['nspname'], row['relname'])}",
            f"PARTITION OF {quoted(parent['nspname'], parent['relname'])} {row['bound']}",
            f"PARTITION BY {row['partition_key']}" if row["partition_key"] else "",
            f"WITH ({row['options']})" if row["options"] else "",
        ]
        return Statement(
            kind="partition",
            name=self._relation(row),
            sql=" ".join(word for word in words if word),
            phase=Phase.BEFORE,
            tables=(root,),
            columns=self._partitioned_by(root, parent, row),
            needs=needs,
        )

    def _partitioned_by(self, root: str, *rows: Row) -> tuple[Place, ...]:
        """The columns of a table that a partition goes by, or that it is cut by again."""
        keys = " ".join(row["partition_key"] or "" for row in rows)
        return tuple((root, column) for column in self._catalogue.tables[root].columns if names_word(keys, column))

    def _constraints(self, kinds: tuple[str, ...]) -> Iterator[Statement]:
        for row in self._catalogue.constraints:
            table = self._catalogue.by_oid.get(row["table_oid"])
            if table is None or row["kind"] not in kinds or row["inherited"] or not self._is_kept(row):
                continue
            columns = table.names(row["columns"])
            target = self._catalogue.by_oid.get(row["target_oid"]) if row["kind"] == "f" else None
            places = [(table.name, c) for c in columns]
            places += [(target.name, c) for c in target.names(row["references"])] if target else []
            only = "ONLY " if table.row["kind"] == "r" else ""
            added = f"ADD CONSTRAINT {quote_sql(row['name'])} {row['definition']}"
            yield _after(
                _KEYS[row["kind"]],
                self._constraint_name(row),
                f"ALTER TABLE {only}{table.quoted} {added}",
                places,
                tables=(table.name, *((target.name,) if target else ())),
                key=() if row["kind"] == "c" else columns,
                needs=self._calls(row["oid"]),
            )

    def _is_kept(self, constraint: Row) -> bool:
        match constraint["kind"]:
            case "u":
                return is_key(constraint, self._catalogue)
            case "f":
                return is_foreign_key(constraint, self._catalogue)
            case kind:
                return kind != "x" and not constraint["period"]

    def _column_options(self) -> Iterator[Statement]:
        for table in self._catalogue.tables.values():
            for name, column in table.columns.items():
                place, alter = f"{table.name}.{name}", f"ALTER TABLE {table.quoted} ALTER COLUMN {quote_sql(name)}"
                target, storage = column.row["statistics"], column.row["storage"]
                if target >= 0:
                    yield _after("column statistics", place, f"{alter} SET STATISTICS {target}", [(table.name, name)])
                if storage is not None:
                    yield _after(
                        "column storage", place, f"{alter} SET STORAGE {_STORAGE[storage]}", [(table.name, name)]
                    )

    def _made_views(self) -> Iterator[Statement]:
        """Views in the order of what they select from."""
        made: set[int] = set()
        waiting = dict(self._views)
        while waiting:
            ready = [oid for oid in waiting if not self._views_under(oid) - made]
            if not ready:
                return
            for oid in ready:
                yield self._view(oid, waiting.pop(oid))
            made |= set(ready)

    def _views_under(self, oid: int) -> set[int]:
        used = {u["used"] for u in self._catalogue.uses if u["of"] == "pg_rewrite" and u["user"] == oid}
        return (used & set(self._views)) - {oid}

    def _view(self, oid: int, row: Row) -> Statement:
        uses = [u for u in self._catalogue.uses if u["of"] == "pg_rewrite" and u["user"] == oid and u["used"] != oid]
        options = f" WITH ({row['options']})" if row["options"] else ""
        word = "MATERIALIZED VIEW" if row["kind"] == "m" else "VIEW"
        name = quoted(row["nspname"], row["relname"])
        needs = [self._view_title(self._views[under]) for under in sorted(self._views_under(oid))]
        needs += [self._function_title(u["used"]) for u in uses if u["used"] in self._functions]
        tables = {u["used"]: self._table_of(u["used"]) for u in uses if u["kind"] == "pg_class"}
        return _after(
            word.lower(),
            self._relation(row),
            f"CREATE {word} {name}{options} AS\n{row['definition'].strip().removesuffix(';')}",
            [place for u in uses if u["kind"] == "pg_class" for place in self._places(u["used"], [u["column"]])],
            tables=tuple(dict.fromkeys(table.name for table in tables.values() if table is not None)),
            needs=tuple(dict.fromkeys(needs)),
        )

    def _indexes(self) -> Iterator[Statement]:
        plain = {index["oid"]: columns for index, columns in plain_indexes(self._catalogue)}
        for row in self._catalogue.indexes:
            if row["oid"] in self._behind:
                yield from self._clustered(row)
                continue
            table, view = self._catalogue.by_oid.get(row["table_oid"]), self._views.get(row["table_oid"])
            sql = row["definition"].replace(" ON ONLY ", " ON ", 1)  # partitions get theirs with the table's
            if self._loses_unique(row):
                sql = sql.replace("CREATE UNIQUE INDEX", "CREATE INDEX", 1).replace(" NULLS NOT DISTINCT", "", 1)
            unique = row["is_unique"] and not self._loses_unique(row)
            kind = "unique index" if unique else "index"
            calls = self._calls(row["oid"])
            if view is not None:
                yield _after(kind, self._index_name(row), sql, [], needs=(self._view_title(view), *calls))
            elif table is not None:
                key = plain.get(row["oid"], ())
                places = self._index_places(row, table)
                name = self._index_name(row)
                yield _after(kind, name, sql, places, tables=(table.name,), key=key, needs=calls)
                yield from self._clustered(row, needs=(f"{kind} {name}",))

    def _index_places(self, row: Row, table: Stored) -> list[Place]:
        """Columns that an index holds, or that its expressions and its condition name."""
        named = [u["column"] for u in self._catalogue.uses if u["object"] == row["oid"] and u["kind"] == "pg_class"]
        return [(table.name, c) for c in dict.fromkeys(table.names([*row["columns"], *named]))]

    def _clustered(self, row: Row, *, needs: tuple[str, ...] = ()) -> Iterator[Statement]:
        table = self._catalogue.by_oid.get(row["table_oid"])
        if row["is_clustered"] and table is not None:
            sql = f"ALTER TABLE {table.quoted} CLUSTER ON {quote_sql(row['name'])}"
            places = [(table.name, c) for c in table.names(row["columns"])]
            yield _after("cluster", self._index_name(row), sql, places, tables=(table.name,), needs=needs)

    def _loses_unique(self, index: Row) -> bool:
        table = self._catalogue.by_oid.get(index["table_oid"])
        if table is None or not index["is_unique"] or index["oid"] in self._behind:
            return False
        return index["is_partial"] or index["has_expressions"] or lets_one_null(index, table)

    def _statistics(self) -> Iterator[Statement]:
        for row in self._catalogue.statistics:
            table = self._catalogue.by_oid.get(row["table_oid"])
            if table is None:
                continue
            uses = [u["column"] for u in self._catalogue.uses if u["object"] == row["oid"] and u["kind"] == "pg_class"]
            names = dict.fromkeys(table.names([*row["columns"], *uses]))
            places, name = [(table.name, c) for c in names], self._called(row)
            yield _after("statistics", name, row["definition"], places, tables=(table.name,))
            if row["target"] >= 0:
                sql = f"ALTER STATISTICS {quoted(row['nspname'], row['name'])} SET STATISTICS {row['target']}"
                yield _after("statistics target", name, sql, places, needs=(f"statistics {name}",))

    def _comments(self) -> Iterator[Statement]:
        catalogue = self._catalogue
        for row in catalogue.others:
            if row["kind"] == "schema" and row["comment"] and row["name"] != _PUBLIC:
                yield _comment("SCHEMA", quote_sql(row["name"]), row["name"], row["comment"])
        for row in catalogue.types.values():
            if row["declared"] and row["comment"] and row["kind"] in ("e", "d", "c"):
                word = "DOMAIN" if row["kind"] == "d" else "TYPE"
                needs = (f"{word.lower()} {self._called(row)}",)
                yield _comment(
                    word, quoted(row["nspname"], row["name"]), self._called(row), row["comment"], needs=needs
                )
        for table in catalogue.tables.values():
            if table.row["comment"]:
                yield _comment("TABLE", table.quoted, table.name, table.row["comment"], tables=(table.name,))
            for name, column in table.columns.items():
                if column.row["comment"]:
                    place = (table.name, name)
                    on = f"{table.quoted}.{quote_sql(name)}"
                    yield _comment("COLUMN", on, ".".join(place), column.row["comment"], places=(place,))
        for row in self._views.values():
            if row["comment"]:
                title = self._view_title(row)
                word = "MATERIALIZED VIEW" if row["kind"] == "m" else "VIEW"
                on = quoted(row["nspname"], row["relname"])
                yield _comment(word, on, self._relation(row), row["comment"], needs=(title,))
        yield from self._key_comments()

    def _key_comments(self) -> Iterator[Statement]:
        for row in self._catalogue.constraints:
            table = self._catalogue.by_oid.get(row["table_oid"])
            if table is not None and row["comment"] and self._is_kept(row) and not row["inherited"]:
                on = f"{quote_sql(row['name'])} ON {table.quoted}"
                title = f"{_KEYS[row['kind']]} {self._constraint_name(row)}"
                yield _comment("CONSTRAINT", on, self._constraint_name(row), row["comment"], needs=(title,))
        for row in self._catalogue.indexes:
            table = self._catalogue.by_oid.get(row["table_oid"])
            if row["comment"] and row["oid"] not in self._behind and table is not None:
                kind = "unique index" if row["is_unique"] and not self._loses_unique(row) else "index"
                on = quoted(row["nspname"], row["name"])
                title = f"{kind} {self._index_name(row)}"
                yield _comment("INDEX", on, self._index_name(row), row["comment"], needs=(title,))

    def _calls(self, object_: int) -> tuple[str, ...]:
        """The functions that an object calls."""
        used = [u["used"] for u in self._catalogue.uses if u["object"] == object_ and u["kind"] == "pg_proc"]
        return tuple(dict.fromkeys(self._function_title(oid) for oid in used if oid in self._functions))

    def _places(self, oid: int, numbers: Iterable[int]) -> list[Place]:
        table = self._table_of(oid)
        return [] if table is None else [(table.name, c) for c in table.names(numbers)]

    def _table_of(self, oid: int) -> Stored | None:
        """A table by its number in the catalogue, or by that of one of its partitions."""
        row = self._catalogue.relations.get(oid)
        while row is not None and row["is_partition"]:
            row = self._catalogue.relations.get(row["parent"])
        return None if row is None else self._catalogue.by_oid.get(row["oid"])

    def _called(self, row: Row) -> str:
        return self._catalogue.called(row["nspname"], row["name"])

    def _relation(self, row: Row) -> str:
        return self._catalogue.called(row["nspname"], row["relname"])

    def _view_title(self, row: Row) -> str:
        return f"{'materialized view' if row['kind'] == 'm' else 'view'} {self._relation(row)}"

    def _function_name(self, row: Row) -> str:
        return f"{self._called(row)}({row['arguments']})"

    def _function_title(self, oid: int) -> str:
        return f"function {self._function_name(self._functions[oid])}"

    def _constraint_name(self, row: Row) -> str:
        return f"{self._catalogue.by_oid[row['table_oid']].name}.{row['name']}"

    def _index_name(self, row: Row) -> str:
        table, view = self._catalogue.by_oid.get(row["table_oid"]), self._views.get(row["table_oid"])
        owner = table.name if table is not None else self._relation(view) if view is not None else row["nspname"]
        return f"{owner}.{row['name']}"


def _before(kind: str, name: str, sql: str) -> Statement:
    return Statement(kind=kind, name=name, sql=sql, phase=Phase.BEFORE)


def _after(
    kind: str,
    name: str,
    sql: str,
    places: Iterable[Place],
    *,
    tables: tuple[str, ...] = (),
    key: tuple[str, ...] = (),
    needs: tuple[str, ...] = (),
) -> Statement:
    columns = tuple(dict.fromkeys(places))
    known = tables or tuple(dict.fromkeys(table for table, _ in columns))
    return Statement(
        kind=kind, name=name, sql=sql, phase=Phase.AFTER, tables=known, columns=columns, needs=needs, key=key
    )


def _comment(
    word: str,
    on: str,
    name: str,
    text: str,
    *,
    tables: tuple[str, ...] = (),
    places: tuple[Place, ...] = (),
    needs: tuple[str, ...] = (),
) -> Statement:
    sql = f"COMMENT ON {word} {on} IS {_literal(text)}"
    return _after("comment", f"{word.lower()} {name}", sql, places, tables=tables, needs=needs)


def _column(column: StoredColumn) -> str:
    """What follows the name of a column."""
    row = column.row
    words = [row["type"]]
    if row["collation"]:
        words.append(f"COLLATE {row['collation']}")
    if row["identity"]:
        words.append(f"GENERATED {'ALWAYS' if row['identity'] == 'a' else 'BY DEFAULT'} AS IDENTITY")
    elif row["generated"]:
        words.append(f"GENERATED ALWAYS AS ({row['default']}) {'STORED' if row['generated'] == 's' else 'VIRTUAL'}")
    elif row["default"] is not None:
        words.append(f"DEFAULT {row['default']}")
    return " ".join(words)


def _domain(row: Row) -> str:
    words = [row["base"]]
    words += [f"COLLATE {row['collation']}"] if row["collation"] else []
    words += [f"DEFAULT {row['default']}"] if row["default"] is not None else []
    words += ["NOT NULL"] if row["required"] else []
    return " ".join([*words, *row["checks"]])


def _counting(row: Row) -> str:
    bounds = f"MINVALUE {row['least']} MAXVALUE {row['most']}"
    words = f"INCREMENT BY {row['increment']} {bounds} START WITH {row['start']} CACHE {row['cache']}"
    return f"{words} CYCLE" if row["cycle"] else words


def _literal(text: str) -> str:
    """A text as PostgreSQL reads it whatever its settings are."""
    escaped = text.replace("'", "''")
    return f"E'{escaped.replace(chr(92), chr(92) * 2)}'" if "\\" in text else f"'{escaped}'"
