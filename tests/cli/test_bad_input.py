"""Bad sources, data, choices and specs: one message that names the place and the remedy, exit 2, nothing left."""

from pathlib import Path

import pytest

from .conftest import DDL, DRAFT, Refused, Run

# -- the source ------------------------------------------------------------------------------------------------


def test_a_folder_that_is_not_there_or_empty(refused: Refused, tmp_path: Path) -> None:
    assert "does not exist. A source is" in refused("draft", tmp_path / "no", *DRAFT, "-o", tmp_path / "s")
    (tmp_path / "empty").mkdir()
    assert "no .parquet or .csv file" in refused("draft", tmp_path / "empty", *DRAFT, "-o", tmp_path / "s")


def test_a_file_that_is_no_database(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello")
    assert "cannot be read as a source" in refused("draft", tmp_path / "x", *DRAFT, "-o", tmp_path / "s")
    (tmp_path / "s.yaml").write_text("tables: {}")
    assert "what `privbench fit` reads" in refused("synth", tmp_path / "s.yaml", "-o", tmp_path / "b", "--epsilon", "3")


def test_a_table_without_file(shop: Path, refused: Refused, tmp_path: Path) -> None:
    (shop / "visit.csv").unlink()
    assert "schema.sql declares visit" in refused("draft", shop, *DRAFT, "-o", tmp_path / "s")


def test_an_unreadable_parquet_file(shop: Path, refused: Refused, tmp_path: Path) -> None:
    (shop / "visit.csv").unlink()
    (shop / "visit.parquet").write_bytes(b"PAR1 and nothing more")
    assert "visit.parquet: is not a readable Parquet" in refused("draft", shop, *DRAFT, "-o", tmp_path / "s")


def test_a_column_of_mixed_types(shop: Path, refused: Refused, tmp_path: Path) -> None:
    with (shop / "person.csv").open("a") as file:
        file.write("99,x,about forty\n")
    message = refused("draft", shop, *DRAFT, "-o", tmp_path / "s")
    assert "person.age: 'about forty' is not a value of type SMALLINT" in message


def test_a_key_of_a_type_without_codec(shop: Path, refused: Refused, tmp_path: Path) -> None:
    (shop / "schema.sql").write_text(DDL.replace("id INTEGER PRIMARY KEY, city", "id SHAPE PRIMARY KEY, city"))
    message = refused("draft", shop, *DRAFT, "-o", tmp_path / "s")
    assert "person.id: is in a key, but type shape has no codec" in message


# -- the data --------------------------------------------------------------------------------------------------


def _spoil(shop: Path, table: str, line: str) -> None:
    with (shop / f"{table}.csv").open("a") as file:
        file.write(line + "\n")


@pytest.mark.parametrize(
    ("table", "line", "words"),
    [
        (
            "visit",
            "900,12345,1",
            "visit.person_id: 1 rows reference a row of person that does not exist. Repair them, or",
        ),
        ("person", "7,x,1", "person(id): 1 rows repeat the key of another row. Remove the duplicates"),
        ("person", ",x,1", "person(id): 1 rows have a NULL in the key"),
        ("visit", "900,,1", "visit.person_id: 1 rows have a NULL here, but the column is NOT NULL"),
    ],
)
def test_keys_that_the_data_break(
    table: str, line: str, words: str, shop: Path, spec: Path, refused: Refused, tmp_path: Path
) -> None:
    _spoil(shop, table, line)
    assert words in refused("fit", spec, "--epsilon", "3", "-o", tmp_path / "m")
    common = ("synth", shop, *DRAFT, "--epsilon", "3", "-o", tmp_path / "out")
    assert words in refused(*common)


def test_orphans_can_count_as_null(shop: Path, run: Run, tmp_path: Path) -> None:
    _spoil(shop, "visit", "900,12345,1")
    common = ("synth", shop, *DRAFT, "--epsilon", "3", "-o", tmp_path / "out", "--orphans", "null")
    assert run(*common).code == 0
    assert run("verify", tmp_path / "out").code == 0


def test_values_outside_a_declared_domain_are_no_error(shop: Path, spec: Path, run: Run, tmp_path: Path) -> None:
    _spoil(shop, "person", "900,never heard of,32000")
    assert run("fit", spec, "--epsilon", "3", "-o", tmp_path / "m").code == 0


def test_a_source_without_a_table_of_the_spec(shop: Path, spec: Path, refused: Refused, tmp_path: Path) -> None:
    (shop / "schema.sql").write_text(DDL.splitlines()[0])
    (shop / "visit.csv").unlink()
    message = refused("fit", spec, "--epsilon", "3", "-o", tmp_path / "m")
    assert "visit: the spec has this table, the source does not" in message


# -- choices ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "no unit: name the table"),
        (("--unit", "persn"), "unit persn: there is no such table. Did you mean person?"),
        (("--unit", "visit"), "no key leads from these tables to visit"),
        (("--unit", "person", "--public", "nix"), "--public nix: there is no such table"),
        (("--unit", "person", "--drop", "nix"), "--drop nix: there is no such table"),
        (("--unit", "person", "--drop", "visit.nix"), "--drop visit.nix: no such column"),
        (("--unit", "person", "--drop", "visit.id"), "visit.id: it is dropped, but it is part of the primary key"),
        (("--unit", "person", "--owner", "nix.a"), "--owner nix.a: write T.COLUMN"),
        (("--unit", "person", "--owner", "visit.cost"), "visit"),
        (("--unit", "person", "--owned-by", "nix"), "--owned-by nix: write T=OWNER"),
        (("--unit", "person", "--public", "person"), "person"),
    ],
)
def test_wrong_choices(flags: tuple[str, ...], words: str, shop: Path, refused: Refused, tmp_path: Path) -> None:
    assert words in refused("draft", shop, "--domains", "data", *flags, "-o", tmp_path / "s")


@pytest.mark.parametrize(
    ("ddl", "words"),
    [
        (
            "CREATE TABLE person (id INTEGER PRIMARY KEY);"
            "CREATE TABLE a (id INTEGER PRIMARY KEY, b INTEGER REFERENCES b (id));"
            "CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER REFERENCES a (id));",
            "no key leads from these tables to person",
        ),
        (
            "CREATE TABLE person (id INTEGER PRIMARY KEY);"
            "CREATE TABLE a (x INTEGER REFERENCES person (id), y INTEGER REFERENCES person (id));",
            "--owner a.x",
        ),
    ],
)
def test_owner_keys_in_a_cycle_or_ambiguous(ddl: str, words: str, refused: Refused, tmp_path: Path) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    (folder / "schema.sql").write_text(ddl)
    for table, columns in (("person", "id"), ("a", "id,b" if "b (id)" in ddl else "x,y"), ("b", "id,a")):
        if f"TABLE {table} " in ddl:
            (folder / f"{table}.csv").write_text(f"{columns}\n")
    assert words in refused("draft", folder, *DRAFT, "-o", tmp_path / "s")


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "abc", "", "1e-400"])
def test_epsilon(epsilon: str, spec: Path, shop: Path, refused: Refused, tmp_path: Path) -> None:
    words = f"epsilon is {epsilon}"
    assert words in refused("fit", spec, "--epsilon", epsilon, "-o", tmp_path / "m")
    assert words in refused("synth", shop, *DRAFT, "--epsilon", epsilon, "-o", tmp_path / "b")


@pytest.mark.parametrize("scale", ["0", "1e9", "-1", "nan", "inf"])
def test_scale(scale: str, model: Path, shop: Path, refused: Refused, tmp_path: Path) -> None:
    assert "it must lie between 0.01 and 1000" in refused("generate", model, "-o", tmp_path / "b", "--scale", scale)
    common = ("synth", shop, *DRAFT, "--epsilon", "3", "-o", tmp_path / "b")
    assert "it must lie between" in refused(*common, "--scale", scale)


def test_domains_of_texts_cannot_be_found(shop: Path, run: Run, refused: Refused, tmp_path: Path) -> None:
    assert "'magic' is not one of 'private', 'data'" in refused(
        "draft", shop, "--domains", "magic", "-o", tmp_path / "s"
    )
    message = refused("synth", shop, "--unit", "person", "--epsilon", "9", "-o", tmp_path / "b")
    assert "no domain for person.city: a list of strings cannot be found" in message
    drafted = run("draft", shop, "--unit", "person", "-o", tmp_path / "s")
    assert "domains will be found with budget" in drafted.out
    assert "`drop: true`: person.city." in drafted.out
    assert "taken from the data" not in drafted.out
    assert "person.city" in refused("fit", tmp_path / "s", "--epsilon", "9", "-o", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_wrong_flags(model: Path, refused: Refused, tmp_path: Path) -> None:
    assert "not be negative" in refused("generate", model, "-o", tmp_path / "b", "--seed", "-1")
    assert "xml" in refused("generate", model, "-o", tmp_path / "b", "--to", "xml")
    assert "No such command" in refused("draught")
    assert "Missing option" in refused("fit", tmp_path / "s")


def test_a_key_too_narrow_for_the_scale(shop: Path, run: Run, refused: Refused, tmp_path: Path) -> None:
    (shop / "schema.sql").write_text(DDL.replace("visit (id INTEGER", "visit (id TINYINT"))
    (shop / "visit.csv").write_text("id,person_id,cost\n" + "".join(f"{i},{i % 60},{i % 7}\n" for i in range(100)))
    assert run("draft", shop, *DRAFT, "-o", tmp_path / "s").code == 0
    assert run("fit", tmp_path / "s", "--epsilon", "900", "-o", tmp_path / "m").code == 0
    message = refused("generate", tmp_path / "m", "-o", tmp_path / "b", "--scale", "1000")
    assert "visit.id: TINYINT has room for 127 keys" in message
    assert "The largest scale that fits is 1" in message
    assert "widen the type in the spec" in message


# -- the spec --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("unit: person", "unit: persn", "Did you mean person?"),
        ("unit: person", "unti: person", "unti"),
        ("type: SMALLINT", "type: SMALINT", "has no codec"),
        ("from: data", "from: nowhere", "from"),
        ("version: 1", "version: 2", "version"),
        ("tables:", "tables: [", "line"),
    ],
)
def test_spec_mistakes(old: str, new: str, words: str, spec: Path, refused: Refused, tmp_path: Path) -> None:
    spec.write_text(spec.read_text().replace(old, new, 1))
    message = refused("fit", spec, "--epsilon", "3", "-o", tmp_path / "m")
    assert words in message
    assert "spec.yaml" in message


def test_a_spec_that_is_not_there_or_names_no_source(spec: Path, refused: Refused, tmp_path: Path) -> None:
    assert "cannot be read" in refused("fit", tmp_path / "no.yaml", "--epsilon", "3", "-o", tmp_path / "m")
    lines = [line for line in spec.read_text().splitlines() if not line.startswith("source:")]
    spec.write_text("\n".join(lines))
    assert "Give one with `--source`" in refused("fit", spec, "--epsilon", "3", "-o", tmp_path / "m")


def test_method_mistakes(spec: Path, refused: Refused, tmp_path: Path) -> None:
    text = spec.read_text()
    spec.write_text(text + "method: {name: magic}\n")
    message = refused("fit", spec, "--epsilon", "3", "-o", tmp_path / "m")
    assert "there is no such method. Methods: tree, paper, independent." in message
    for name, settings in (("tree", "parents"), ("paper", "min_rows")):
        spec.write_text(text + f"method: {{name: {name}, apha: 0.5}}\n")
        message = refused("fit", spec, "--epsilon", "3", "-o", tmp_path / "m")
        assert f"method.apha: the method {name} has no such setting" in message
        assert settings in message
    spec.write_text(text + "method: {parents: 9}\n")
    assert "method.parents is 9: it must lie" in refused("fit", spec, "--epsilon", "3", "-o", tmp_path / "m")
