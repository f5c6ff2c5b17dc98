"""A forum through a whole run: active users have many posts and badges and are referenced often; sizes are met."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import privbench
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.io.base import Format
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.verify import verify
from privbench.privacy.queries import Counts
from privbench.schema.spec import Orphans, Sizes, Spec
from privbench.schema.unit import Neighbours
from privbench.spn.clique import CliqueTree, Conditional
from privbench.spn.feature_names import ACTIVITY
from privbench.spn.nodes import walk

from ..seeded import SeededEntropy
from .checks import broken_promises, read_bundle
from .shapes import Rng, Shape

Ints = NDArray[np.int64]
USERS = 4000
DDL = """
CREATE TABLE users (id BIGINT PRIMARY KEY, level INTEGER NOT NULL CHECK (level BETWEEN 0 AND 3),
  friend BIGINT REFERENCES users (id));
CREATE TABLE post (id BIGINT PRIMARY KEY, author BIGINT NOT NULL REFERENCES users (id),
  kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 2), editor BIGINT REFERENCES users (id),
  follows BIGINT REFERENCES post (id));
CREATE TABLE badge (id BIGINT PRIMARY KEY, holder BIGINT NOT NULL REFERENCES users (id),
  class INTEGER NOT NULL CHECK (class BETWEEN 0 AND 2), giver BIGINT NOT NULL REFERENCES users (id));
"""
CHOICES: Mapping[str, Any] = {"unit": "users", "owners": {"post": ("author",), "badge": ("holder",)}}
EDITED = np.array([0.05, 0.4, 0.9])
"""How many posts of each kind have an editor."""


def forum(rng: Rng, *, users: int = USERS, most: float = 300) -> dict[str, dict[str, Any]]:
    """Users of Pareto activity, up to a limit: posts, badges, editors and givers follow it."""
    active = np.minimum(rng.pareto(1.1, users), most)
    posts, badges = rng.poisson(1.2 * active), rng.poisson(0.6 * active)
    chance = (active + 0.02) / (active + 0.02).sum()
    authors, holders = np.repeat(np.arange(users), posts), np.repeat(np.arange(users), badges)
    kinds = rng.integers(0, 3, len(authors))

    def referenced(number: int, *, there: NDArray[np.bool_] | None = None) -> list[Any]:
        found = (1 + rng.choice(users, number, p=chance)).tolist()
        return (
            found if there is None else [key if is_there else None for key, is_there in zip(found, there, strict=True)]
        )

    edited = rng.random(len(authors)) < EDITED[kinds]
    follows = [int(rng.integers(1, at + 1)) if at and rng.random() < 0.5 else None for at in range(len(authors))]
    friends = rng.random(users) < 0.5
    return {
        "users": {
            "id": range(1, users + 1),
            "level": np.minimum(np.log2(active + 1), 3).astype(int),
            "friend": referenced(users, there=friends),
        },
        "post": {
            "id": range(1, len(authors) + 1),
            "author": authors + 1,
            "kind": kinds,
            "editor": referenced(len(authors), there=edited),
            "follows": follows,
        },
        "badge": {
            "id": range(1, len(holders) + 1),
            "holder": holders + 1,
            "class": rng.integers(0, 3, len(holders)),
            "giver": referenced(len(holders)),
        },
    }


FORUM = Shape(ddl=DDL, rows=forum, choices=CHOICES)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Database:
    """The columns of a database, by table."""

    tables: Mapping[str, Mapping[str, list[Any]]]

    def rows(self, table: str) -> int:
        """How many rows a table has."""
        return len(self.tables[table]["id"])

    def degrees(self, table: str, key: str, target: str) -> Ints:
        """How many rows of a table reference each row of another."""
        places = {row: at for at, row in enumerate(self.tables[target]["id"])}
        keys = [places[value] for value in self.tables[table][key] if value is not None]
        return np.bincount(keys, minlength=len(places))


def read(folder: Path) -> Database:
    return Database(tables={path.stem: pq.read_table(path).to_pydict() for path in folder.glob("*.parquet")})


def released(spec: Spec, folder: Path, *, epsilon: str = "400", delta: str = "0") -> tuple[Model, Database]:
    """Fit, save, verify, load and generate; keys reference rows that are there."""
    model = fit(spec, epsilon=epsilon, delta=delta, entropy=SeededEntropy(5))
    save_model(model, folder / "model")
    verdict = verify(folder / "model")
    assert verdict.status in ("verified", "conditional"), verdict.problems
    rows = generate(load_model(folder / "model"), folder / "out", seed=1)
    schema = model.protection.schema
    tables = read_bundle(folder / "out", schema, Format.PARQUET)
    assert broken_promises(schema, tables) == []
    assert {name: len(table) for name, table in tables.items()} == rows
    return model, read(folder / "out" / "data")


def has_hub(model: Model, table: str = "users") -> bool:
    return ACTIVITY in model.tables[table].network.sizes


def lift(one: Ints, other: Ints) -> float:
    """How many times as large as if they had nothing to do with each other the product of two numbers is on average."""
    return float((one * other).mean() / (one.mean() * other.mean()))


def top_share(degrees: Ints) -> float:
    """Which part of keys reference the 1 % of rows that most reference."""
    return float(np.sort(degrees)[::-1][: len(degrees) // 100].sum() / degrees.sum())


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FORUM.write(tmp_path_factory.mktemp("forum") / "source")


@pytest.fixture(scope="module")
def both(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Database, Database, Model]:
    """The real forum, a synthetic one with ample epsilon, and its model."""
    model, made = released(draft(source, **CHOICES), tmp_path_factory.mktemp("made"))
    return read(source), made, model


Both = tuple[Database, Database, Model]
POSTS, BADGES = ("post", "author", "users"), ("badge", "holder", "users")
EDITORS, GIVERS, FRIENDS = ("post", "editor", "users"), ("badge", "giver", "users"), ("users", "friend", "users")


def test_there_is_a_hub_where_rows_own_others_and_are_referenced(both: Both) -> None:
    assert has_hub(both[2])
    assert not has_hub(both[2], "post")
    assert not has_hub(both[2], "badge")
    activity = {c.column: c.parents for c in _conditionals(both[2])}
    assert sum(parents == (ACTIVITY,) for parents in activity.values()) == 5


def _conditionals(model: Model) -> list[Conditional]:
    trees = [node for node in walk(model.tables["users"].network) if isinstance(node, CliqueTree)]
    return [column for tree in trees for column in tree.columns]


@pytest.mark.parametrize("other", [BADGES, EDITORS, GIVERS, FRIENDS])
def test_users_with_many_posts_have_and_get_many_others(other: tuple[str, str, str], both: Both) -> None:
    real, made, _ = both
    truth, found = (lift(db.degrees(*POSTS), db.degrees(*other)) for db in (real, made))
    assert truth > 10, "the forum must be uneven"
    assert truth / 2 < found < truth * 2


@pytest.mark.parametrize("keys", [POSTS, BADGES, EDITORS, GIVERS, FRIENDS])
def test_the_most_referenced_are_referenced_as_often(keys: tuple[str, str, str], both: Both) -> None:
    truth, found = (top_share(db.degrees(*keys)) for db in both[:2])
    assert found == pytest.approx(truth, rel=0.3)


def test_whether_a_post_has_an_editor_depends_on_its_kind(both: Both) -> None:
    for db in both[:2]:
        kinds = np.array(db.tables["post"]["kind"])
        edited = np.array([key is not None for key in db.tables["post"]["editor"]])
        shares = [float(edited[kinds == kind].mean()) for kind in range(3)]
        assert shares == pytest.approx(EDITED.tolist(), abs=0.04)


def test_sizes_are_met(both: Both) -> None:
    real, made, model = both
    assert made.rows("users") == USERS
    for table in ("post", "badge"):
        assert made.rows(table) == pytest.approx(real.rows(table), rel=0.02)
        assert model.tables[table].rows_error < 0.1


def test_what_was_asked(both: Both) -> None:
    queries = [node["query"] for node in both[2].receipt["ledger"]["nodes"] if node["kind"] == "event"]
    kinds = [[axis["feature"]["kind"] for axis in query.get("axes", ())] for query in queries]
    assert kinds.count(["activity", "fanout"]) == 2
    assert kinds.count(["activity", "in-degree"]) == 3
    assert sum(query.get("counts") == Counts.VOTES.value for query in queries) == 3
    assert any(query["kind"] == "histogram" and not query["axes"] and query["full_rows"] > 1 for query in queries)


# -- other choices -------------------------------------------------------------------------------------------------

SMALL = Shape(ddl=DDL, rows=lambda rng: forum(rng, users=600, most=20), choices=CHOICES)
EMPTY = Shape(ddl=DDL, rows=lambda rng: forum(rng, users=600, most=0), choices=CHOICES)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SMALL.write(tmp_path_factory.mktemp("small") / "source")


def test_entities_that_come_and_go(small: Path, tmp_path: Path) -> None:
    model, made = released(draft(small, neighbours=Neighbours.ADD_REMOVE, **CHOICES), tmp_path)
    assert has_hub(model)
    assert made.rows("users") == pytest.approx(600, rel=0.02)
    assert made.rows("post") == pytest.approx(read(small).rows("post"), rel=0.05)


def test_a_delta(small: Path, tmp_path: Path) -> None:
    model, made = released(draft(small, **CHOICES), tmp_path, delta="1e-6")
    assert has_hub(model)
    assert made.rows("post") == pytest.approx(read(small).rows("post"), rel=0.05)


@pytest.mark.parametrize("epsilon", ["20", "200"])
def test_public_sizes_are_exact(epsilon: str, small: Path, tmp_path: Path) -> None:
    spec = draft(small, **CHOICES).model_copy(update={"sizes": Sizes.PUBLIC})
    model, made = released(spec, tmp_path, epsilon=epsilon)
    assert has_hub(model)
    assert {name: table.rows_error for name, table in model.tables.items()} == dict.fromkeys(model.tables, 0.0)
    for table in ("users", "post", "badge"):
        assert made.rows(table) == read(small).rows(table)
    assert not any(
        node["query"]["kind"] == "histogram" and not node["query"]["axes"]
        for node in model.receipt["ledger"]["nodes"]
        if node["kind"] == "event"
    ), "what is public is not counted"


def test_orphans_are_null(small: Path, tmp_path: Path) -> None:
    """Of some users only what they did is left: posts without author, keys to nobody."""
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "schema.sql").write_text(DDL.replace("author BIGINT NOT NULL", "author BIGINT"))
    for path in small.glob("*.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.slice(30) if path.stem == "users" else table, cut / path.name)
    model, made = released(draft(cut, orphans=Orphans.NULL, **CHOICES), tmp_path)
    assert has_hub(model)
    assert made.rows("users") == 570
    assert made.rows("post") == pytest.approx(read(small).rows("post"), rel=0.1)


@pytest.mark.parametrize("epsilon", ["1", "50", "1000000"])
def test_a_hub_of_nothing(epsilon: str, tmp_path: Path) -> None:
    """No user owns anything; friends are all that there is."""
    source = EMPTY.write(tmp_path / "source")
    model, made = released(draft(source, **CHOICES), tmp_path, epsilon=epsilon)
    assert has_hub(model)
    if epsilon != "1":
        assert made.rows("post") < 20
        friends = made.degrees(*FRIENDS)
        assert friends.sum() == pytest.approx(300, abs=60)


@pytest.mark.parametrize("users", [1, 2])
def test_hardly_anybody(users: int, tmp_path: Path) -> None:
    source = Shape(ddl=DDL, rows=lambda rng: forum(rng, users=users), choices=CHOICES).write(tmp_path / "source")
    model, made = released(draft(source, **CHOICES), tmp_path, epsilon="100")
    assert made.rows("users") == users
    assert has_hub(model)


CHAIN = """
CREATE TABLE users (id BIGINT PRIMARY KEY, level INTEGER NOT NULL CHECK (level BETWEEN 0 AND 3));
CREATE TABLE post (id BIGINT PRIMARY KEY, author BIGINT NOT NULL REFERENCES users (id),
  kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 2), follows BIGINT REFERENCES post (id));
CREATE TABLE comment (id BIGINT PRIMARY KEY, post BIGINT NOT NULL REFERENCES post (id),
  tone INTEGER NOT NULL CHECK (tone BETWEEN 0 AND 1), answers BIGINT REFERENCES post (id));
"""


def chain(rng: Rng) -> dict[str, dict[str, Any]]:
    """Posts with comments are followed and answered; a post is a hub, with a reference to its own table."""
    users = 800
    authors = np.repeat(np.arange(users), rng.poisson(3, users))
    active = np.minimum(rng.pareto(1.1, len(authors)), 100)
    posts = np.repeat(np.arange(len(authors)), rng.poisson(active))
    chance = (active + 0.02) / (active + 0.02).sum()
    follows = rng.choice(len(authors), len(authors), p=chance)
    answers = rng.choice(len(authors), len(posts), p=chance)
    return {
        "users": {"id": range(users), "level": rng.integers(0, 4, users)},
        "post": {
            "id": range(len(authors)),
            "author": authors,
            "kind": rng.integers(0, 3, len(authors)),
            "follows": [int(f) if at % 2 else None for at, f in enumerate(follows)],
        },
        "comment": {
            "id": range(len(posts)),
            "post": posts,
            "tone": rng.integers(0, 2, len(posts)),
            "answers": answers.tolist(),
        },
    }


def test_a_hub_of_an_owned_table_with_a_reference_to_itself(tmp_path: Path) -> None:
    choices = {"unit": "users", "owners": {"post": ("author",), "comment": ("post",)}}
    source = Shape(ddl=CHAIN, rows=chain, choices=choices).write(tmp_path / "source")
    model, made = released(draft(source, **choices), tmp_path, epsilon="400")
    real = read(source)
    assert has_hub(model, "post")
    for table in ("post", "comment"):
        assert made.rows(table) == pytest.approx(real.rows(table), rel=0.05)
    for keys in (("comment", "answers", "post"), ("post", "follows", "post")):
        truth, found = (lift(db.degrees("comment", "post", "post"), db.degrees(*keys)) for db in (real, made))
        assert truth > 4
        assert truth / 2.5 < found < truth * 2.5


def test_owners_without_columns_of_their_own_are_learnt() -> None:
    """Fanouts are all there is to measure, and leave nothing for a hub."""
    ddl = """CREATE TABLE person (id INTEGER PRIMARY KEY);
    CREATE TABLE a (person INTEGER NOT NULL REFERENCES person (id), n SMALLINT);
    CREATE TABLE b (person INTEGER NOT NULL REFERENCES person (id), n SMALLINT);"""
    owned = pa.table({"person": pa.array([i % 40 for i in range(60)], pa.int32()), "n": [i % 5 for i in range(60)]})
    tables = {"person": pa.table({"id": pa.array(range(40), pa.int32())}), "a": owned, "b": owned}
    spec = privbench.draft(tables, schema=ddl, unit="person", domains="data", find=False)
    model = privbench.fit(spec, source=tables, epsilon=20, rehearse=False)
    assert set(model.tables) == {"person", "a", "b"}
