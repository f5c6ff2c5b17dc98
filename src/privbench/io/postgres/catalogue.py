"""The catalogue of a PostgreSQL database, read in a handful of queries and kept as plain values.

Rights to connect are enough. Names in what PostgreSQL writes (types, defaults, definitions) are qualified by their
schema, since the search path is empty while the catalogue is read, as it is for pg_dump. Tables are called as the
user's queries call them: by their name alone if it is on the search path, else schema.table. Partitions are part of
their table; tables of extensions, and system tables, are passed over.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privbench.io.names import quote_sql

if TYPE_CHECKING:
    from psycopg import Connection

_OURS = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
_NO_EXTENSION = (
    "NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = '{0}'::regclass AND e.objid = {1} AND e.deptype = 'e')"
)
_TABLES = f"""
SELECT c.oid, n.nspname, c.relname, c.relkind::text AS kind, c.relpersistence::text AS persistence,
  c.relispartition AS is_partition, (SELECT min(inhparent) FROM pg_inherits WHERE inhrelid = c.oid) AS parent,
  pg_get_partkeydef(c.oid) AS partition_key, pg_get_expr(c.relpartbound, c.oid) AS bound,
  coalesce(array_to_string(c.reloptions, ', '), '') AS options, obj_description(c.oid, 'pg_class') AS comment,
  CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END AS definition,
  c.relrowsecurity AS row_security
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OURS} AND {_NO_EXTENSION.format("pg_class", "c.oid")}
ORDER BY c.oid"""
_COLUMNS = f"""
SELECT a.attrelid AS oid, a.attnum AS number, a.attname AS name, a.atttypid AS type_oid,
  format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable,
  a.attidentity::text AS identity, a.attgenerated::text AS generated, pg_get_expr(d.adbin, d.adrelid) AS "default",
  CASE WHEN a.attcollation <> t.typcollation THEN
    (SELECT quote_ident(cn.nspname) || '.' || quote_ident(co.collname) FROM pg_collation co
     JOIN pg_namespace cn ON cn.oid = co.collnamespace WHERE co.oid = a.attcollation) END AS collation,
  coalesce(a.attstattarget, -1) AS statistics, col_description(a.attrelid, a.attnum) AS comment,
  CASE WHEN a.attstorage <> t.typstorage THEN a.attstorage::text END AS storage
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm') AND {_OURS}
ORDER BY a.attrelid, a.attnum"""
_TYPES = f"""
SELECT t.oid, n.nspname, t.typname AS name, t.typtype::text AS kind, t.typbasetype AS base_oid,
  format_type(t.typbasetype, t.typtypmod) AS base, t.typelem AS element, t.typcategory = 'A' AS is_array,
  t.typnotnull AS required, t.typdefault AS "default", obj_description(t.oid, 'pg_type') AS comment,
  CASE WHEN t.typcollation <> coalesce(b.typcollation, 0) AND t.typtype = 'd' THEN
    (SELECT quote_ident(cn.nspname) || '.' || quote_ident(co.collname) FROM pg_collation co
     JOIN pg_namespace cn ON cn.oid = co.collnamespace WHERE co.oid = t.typcollation) END AS collation,
  ARRAY(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder) AS labels,
  ARRAY(SELECT 'CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid) FROM pg_constraint k
    WHERE k.contypid = t.oid AND k.contype = 'c' ORDER BY k.conname) AS checks,
  ARRAY(SELECT quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod) FROM pg_attribute a
    WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) AS attributes,
  {_NO_EXTENSION.format("pg_type", "t.oid")} AND {_OURS} AND t.typelem = 0
    AND (t.typrelid = 0 OR (SELECT relkind FROM pg_class WHERE oid = t.typrelid) = 'c') AS declared
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_type b ON b.oid = t.typbasetype
WHERE t.typtype IN ('e', 'd', 'c', 'r', 'm') OR (t.typelem <> 0 AND t.typcategory = 'A')
ORDER BY t.oid"""
_CONSTRAINTS = f"""
SELECT k.oid, k.conrelid AS table_oid, k.conname AS name, k.contype::text AS kind, k.conkey AS columns,
  k.confrelid AS target_oid, k.confkey AS "references", pg_get_constraintdef(k.oid) AS definition,
  k.conparentid <> 0 AS inherited, k.conindid AS index_oid, obj_description(k.oid, 'pg_constraint') AS comment,
  coalesce((to_jsonb(k) ->> 'conperiod')::boolean, false) AS period
FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace
WHERE k.conrelid <> 0 AND k.contype IN ('p', 'u', 'f', 'c', 'x') AND {_OURS} ORDER BY k.conrelid, k.oid"""
_INDEXES = f"""
SELECT i.indexrelid AS oid, i.indrelid AS table_oid, n.nspname, c.relname AS name, am.amname AS method,
  i.indisunique AS is_unique, i.indisclustered AS is_clustered, i.indpred IS NOT NULL AS is_partial,
  i.indexprs IS NOT NULL AS has_expressions, i.indkey::smallint[] AS columns, i.indnkeyatts AS keys,
  pg_get_indexdef(i.indexrelid) AS definition, obj_description(c.oid, 'pg_class') AS comment,
  coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) AS one_null
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_am am ON am.oid = c.relam
WHERE NOT c.relispartition AND i.indisvalid AND {_OURS} ORDER BY i.indexrelid"""
_SEQUENCES = f"""
SELECT c.oid, n.nspname, c.relname AS name, format_type(s.seqtypid, NULL) AS type, s.seqstart AS start,
  s.seqincrement AS increment, s.seqmin AS least, s.seqmax AS most, s.seqcache AS cache, s.seqcycle AS cycle,
  d.refobjid AS table_oid, d.refobjsubid AS column, d.deptype::text AS owned,
  ARRAY(SELECT ARRAY[x.adrelid::bigint, x.adnum] FROM pg_depend u JOIN pg_attrdef x ON x.oid = u.objid
    WHERE u.classid = 'pg_attrdef'::regclass AND u.refclassid = 'pg_class'::regclass AND u.refobjid = c.oid) AS users
FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')
  AND d.refclassid = 'pg_class'::regclass
WHERE {_OURS} AND {_NO_EXTENSION.format("pg_class", "c.oid")} ORDER BY c.oid"""
_STATISTICS = f"""
SELECT s.oid, n.nspname, s.stxname AS name, s.stxrelid AS table_oid, s.stxkeys::smallint[] AS columns,
  pg_get_statisticsobjdef(s.oid) AS definition, obj_description(s.oid, 'pg_statistic_ext') AS comment,
  coalesce((to_jsonb(s) ->> 'stxstattarget')::int, -1) AS target
FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace WHERE {_OURS} ORDER BY s.oid"""
_USES = """
SELECT coalesce(r.ev_class, x.adrelid, d.objid) AS user, d.classid::regclass::text AS of, d.objid AS object,
  d.refclassid::regclass::text AS kind, d.refobjid AS used, d.refobjsubid AS column
FROM pg_depend d LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
LEFT JOIN pg_attrdef x ON d.classid = 'pg_attrdef'::regclass AND x.oid = d.objid
WHERE d.classid IN ('pg_rewrite'::regclass, 'pg_class'::regclass, 'pg_statistic_ext'::regclass,
    'pg_attrdef'::regclass, 'pg_constraint'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass)
  AND d.refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass) AND d.deptype IN ('n', 'a', 'i')
  AND d.refobjid >= 16384"""
_FUNCTIONS = f"""
SELECT p.oid, n.nspname, p.proname AS name, pg_get_functiondef(p.oid) AS definition,
  pg_get_function_identity_arguments(p.oid) AS arguments
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.prokind = 'f' AND {_OURS} AND {_NO_EXTENSION.format("pg_proc", "p.oid")} ORDER BY p.oid"""
_OTHERS = f"""
SELECT 'extension' AS kind, e.extname AS name, n.nspname, 0 AS table_oid, NULL AS comment FROM pg_extension e
JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname <> 'plpgsql'
UNION ALL SELECT 'schema', n.nspname, n.nspname, 0, obj_description(n.oid, 'pg_namespace') FROM pg_namespace n
WHERE {_OURS} AND {_NO_EXTENSION.format("pg_namespace", "n.oid")}
UNION ALL SELECT 'trigger', t.tgname, n.nspname, t.tgrelid, NULL FROM pg_trigger t
JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT t.tgisinternal AND {_OURS}
UNION ALL SELECT 'policy', p.polname, n.nspname, p.polrelid, NULL FROM pg_policy p
JOIN pg_class c ON c.oid = p.polrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {_OURS}
UNION ALL SELECT 'rule', r.rulename, n.nspname, r.ev_class, NULL FROM pg_rewrite r
JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE r.rulename <> '_RETURN' AND {_OURS}"""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredType:
    """What stands behind the type of a column: the type under its domains, and what these ask of a value."""

    base: str
    """The type as PostgreSQL writes it, without domains."""
    labels: tuple[str, ...] = ()
    """The labels of an ENUM, or of the elements of an array of one."""
    checks: tuple[str, ...] = ()
    """CHECKs of domains, about VALUE."""
    required: bool = False
    known: bool = True
    """Whether values are of a built-in type, or one of an extension, rather than rows or ranges of the user's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredColumn:
    """A column as the catalogue has it."""

    row: Row
    stored: StoredType

    @property
    def base(self) -> str:
        return self.stored.base


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A table as the catalogue has it, under our name of it."""

    name: str
    row: Row
    columns: Mapping[str, StoredColumn]

    @property
    def namespace(self) -> str:
        return str(self.row["nspname"])

    @property
    def quoted(self) -> str:
        return quoted(self.row["nspname"], self.row["relname"])

    @property
    def from_clause(self) -> str:
        """What to read from: all partitions, but not tables that inherit the old way, which are tables of their own."""
        return self.quoted if self.row["kind"] == "p" else f"ONLY {self.quoted}"

    def names(self, numbers: Iterable[int] | None) -> tuple[str, ...]:
        """The columns of these numbers; those of expressions, which have none, are passed over."""
        by_number = {c.row["number"]: name for name, c in self.columns.items()}
        return tuple(by_number[n] for n in numbers or () if n in by_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All that was read."""

    user: str
    path: tuple[str, ...]
    """The schemas that the user's queries look in."""
    tables: Mapping[str, Stored]
    by_oid: Mapping[int, Stored]
    relations: Mapping[int, Row]
    """Tables, partitions, views and foreign tables, by their number in the catalogue."""
    types: Mapping[int, Row]
    constraints: tuple[Row, ...] = ()
    indexes: tuple[Row, ...] = ()
    sequences: tuple[Row, ...] = ()
    statistics: tuple[Row, ...] = ()
    uses: tuple[Row, ...] = ()
    functions: tuple[Row, ...] = ()
    others: tuple[Row, ...] = ()

    def called(self, namespace: str, name: str) -> str:
        """What people call an object: without its schema if that is on the search path."""
        return name if namespace in self.path else f"{namespace}.{name}"


def quoted(namespace: str, name: str) -> str:
    """A name with its schema, as SQL writes it."""
    return f"{quote_sql(namespace)}.{quote_sql(name)}"


def read_catalogue(connection: "Connection[Any]") -> Catalogue:
    """Read the catalogue inside the transaction that is open."""
    [first] = _rows(connection, "SELECT current_user::text AS user, current_schemas(false)::text[] AS path")
    with connection.transaction():
        connection.execute("SET LOCAL search_path = ''")
        relations = {row["oid"]: row for row in _rows(connection, _TABLES)}
        columns = _rows(connection, _COLUMNS)
        types = {row["oid"]: row for row in _rows(connection, _TYPES)}
        parts = {
            name: tuple(_rows(connection, query))
            for name, query in (
                ("constraints", _CONSTRAINTS),
                ("indexes", _INDEXES),
                ("sequences", _SEQUENCES),
                ("statistics", _STATISTICS),
                ("uses", _USES),
                ("functions", _FUNCTIONS),
                ("others", _OTHERS),
            )
        }
        connection.execute(b"SELECT set_config('search_path', %s, true)", [", ".join(map(quote_sql, first["path"]))])
    by_oid = _stored(relations, columns, types, path=first["path"])
    return Catalogue(
        user=first["user"],
        path=tuple(first["path"]),
        tables={table.name: table for table in by_oid.values()},
        by_oid=by_oid,
        relations=relations,
        types=types,
        **parts,
    )


def _rows(connection: "Connection[Any]", query: str) -> list[dict[str, Any]]:
    cursor = connection.execute(query.encode())
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _stored(
    relations: Mapping[int, Row], columns: Iterable[Row], types: Mapping[int, Row], *, path: Iterable[str]
) -> dict[int, Stored]:
    """The tables that are read: no view, no foreign table, and no partition, whose rows its table has."""
    by_table: dict[int, dict[str, StoredColumn]] = {}
    for row in columns:
        stored = _type_of(row["type_oid"], row["type"], types)
        by_table.setdefault(row["oid"], {})[row["name"]] = StoredColumn(row=row, stored=stored)
    wanted = [row for row in relations.values() if row["kind"] in ("r", "p") and not row["is_partition"]]
    visible: dict[str, int] = {}
    for schema in path:  # of two tables of one name, the path finds the first
        for row in wanted:
            if row["nspname"] == schema:
                visible.setdefault(row["relname"], row["oid"])
    return {
        row["oid"]: Stored(
            name=row["relname"] if visible.get(row["relname"]) == row["oid"] else f"{row['nspname']}.{row['relname']}",
            row=row,
            columns=by_table.get(row["oid"], {}),
        )
        for row in wanted
        if row["oid"] in by_table
    }


def _type_of(oid: int, shown: str, types: Mapping[int, Row]) -> StoredType:
    """Look through domains, and into arrays for the labels of their elements."""
    checks: list[str] = []
    required = False
    while oid in types and types[oid]["kind"] == "d":
        domain = types[oid]
        checks += domain["checks"]
        required |= domain["required"]
        oid, shown = domain["base_oid"], domain["base"]
    row = types.get(oid, {})
    element = types.get(row.get("element", 0), {}) if row.get("is_array") else row
    known = element.get("kind", "b") in ("b", "e") or not element.get("declared")
    return StoredType(
        base=shown, labels=tuple(element.get("labels", ())), checks=tuple(checks), required=required, known=known
    )
