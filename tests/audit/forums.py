"""Pairs of forums that differ in one entity: users with a hub, chains of owned tables, and references of every kind.

Users own posts and badges, posts own comments; posts have an editor and may follow another post, comments mention users
and answer comments; many edits and mentions are of the post's author. So users and posts are owners and referenced, by
keys of others and of their own table.
"""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .worlds import Pair, Rows, write_entities

COLUMNS: Mapping[str, Sequence[str]] = {
    "users": ("id", "level", "friend"),
    "post": ("id", "author", "kind", "editor", "follows"),
    "comment": ("id", "post", "tone", "mentions", "answers"),
    "badge": ("id", "holder", "class"),
}
DDL = """
CREATE TABLE users (id BIGINT PRIMARY KEY, level BIGINT NOT NULL CHECK (level BETWEEN 0 AND 3),
  friend BIGINT REFERENCES users (id));
CREATE TABLE post (id BIGINT PRIMARY KEY, author BIGINT REFERENCES users (id),
  kind BIGINT NOT NULL CHECK (kind BETWEEN 0 AND 1), editor BIGINT REFERENCES users (id),
  follows BIGINT REFERENCES post (id));
CREATE TABLE comment (id BIGINT PRIMARY KEY, post BIGINT NOT NULL REFERENCES post (id),
  tone BIGINT NOT NULL CHECK (tone BETWEEN 0 AND 2), mentions BIGINT NOT NULL REFERENCES users (id),
  answers BIGINT REFERENCES comment (id));
CREATE TABLE badge (id BIGINT PRIMARY KEY, holder BIGINT NOT NULL REFERENCES users (id),
  class BIGINT NOT NULL CHECK (class BETWEEN 0 AND 2));
"""
CHOICES: Mapping[str, Any] = {
    "unit": "users",
    "owners": {"post": ("author",), "comment": ("post",), "badge": ("holder",)},
}


def write_forums(folder: Path, *, seed: int, users: int, replaced: bool) -> Pair:
    """A forum, and the same with one entity replaced by another, or without it.

    The entity has many rows, whose keys reference others. Where it may be missing, nobody references it.
    """
    rng = random.Random(seed)
    referenced, posts = range(1, users + replaced), list[int]()
    others = [_user(rng, number, referenced, posts, rows=_pareto(rng)) for number in range(1, users)]
    others.append(_orphan(rng, users + 1, referenced, posts))
    everyone, posts = range(1, users + 1), [row[0] for rows in others for row in rows["post"]]
    first = _user(rng, users, everyone, posts[:], rows=rng.choice([1, 40, 300]))
    second = _user(rng, users, everyone, posts[:], rows=rng.choice([0, 150]), base=500_000) if replaced else _nothing()
    place = rng.randrange(users)
    both = [[*others[:place], entity, *others[place:]] for entity in (first, second)]
    one, other = (
        write_entities(folder / name, DDL, COLUMNS, e) for name, e in zip(("one", "other"), both, strict=True)
    )
    return Pair(one=one, other=other)


def _nothing() -> Rows:
    return {table: [] for table in COLUMNS}


def _pareto(rng: random.Random) -> int:
    return min(int(rng.paretovariate(0.9)) - 1, 90)


def _user(
    rng: random.Random, number: int, everyone: Sequence[int], posts: list[int], *, rows: int, base: int = 0
) -> Rows:
    """A user with about so many rows in each table."""
    found, first = _nothing(), number * 1_000_000 + base
    found["users"].append((number, min(rows, 3), rng.choice([None, rng.choice(everyone)])))
    for at in range(rows):
        _post(rng, found, first + 100 * at, number, everyone, posts)
    found["badge"] += [(first + at, number, rng.randint(0, 2)) for at in range(rng.randint(0, rows))]
    return found


def _orphan(rng: random.Random, number: int, everyone: Sequence[int], posts: list[int]) -> Rows:
    """A post that nobody owns: an entity of its own."""
    found = _nothing()
    _post(rng, found, number * 1_000_000, None, everyone, posts)
    return found


def _post(
    rng: random.Random, rows: Rows, number: int, author: int | None, everyone: Sequence[int], posts: list[int]
) -> None:
    """A post and its comments; `posts` are those that it may follow, and it is one more of them."""
    kind = rng.randint(0, 1)
    anyone = [
        *everyone,
        *[author] * (author is not None) * (len(everyone) // 2),
    ]  # a third of the keys is to the author
    editor = rng.choice([None, rng.choice(anyone)]) if kind else None
    rows["post"].append((number, author, kind, editor, rng.choice([None, *rng.sample(posts, min(len(posts), 2))])))
    posts.append(number)
    for at in range(rng.choice([0, 0, 1, 3])):
        answers = rng.choice([None, rows["comment"][-1][0]]) if rows["comment"] else None
        rows["comment"].append((number + at, number, rng.randint(0, 2), rng.choice(anyone), answers))
