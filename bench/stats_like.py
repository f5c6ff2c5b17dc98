"""A made-up database of a question-and-answer site: the tables, sizes and links of STATS (StackExchange), by seed.

Each user has a latent activity with a Pareto tail. Posts, badges, edits, comments and votes of a user follow it, each
by another law (power, saturation, a role of few users) with noise of its own, so that fanouts and in-degrees into
`users` go together, but along no common slope. Votes and comments of a post follow its appeal and, weakly, its owner's
activity. Attributes depend mildly on both; what a row dates from lies after what it belongs to.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Table = dict[str, Any]

USERS, POSTS, VOTES, COMMENTS, BADGES, POST_LINKS = 40_325, 92_000, 328_000, 174_300, 79_900, 11_100
EDITED, SELF_EDITED, OWN_COMMENT, NO_OWNER = 0.49, 0.15, 0.33, 0.015
TOP_EDITORS = 0.43
"""Of the edits of others' posts, the ten most active editors have this expected share."""
VOTE_TYPES = np.array([1, 2, 3, 5, 6, 8, 9, 10, 11, 15, 16])
VOTE_SHARES = np.array([0.045, 0.765, 0.035, 0.105, 0.004, 0.0035, 0.003, 0.012, 0.002, 0.012, 0.0135])
FAVOURITE, BOUNTY_START, BOUNTY_END = 5, 8, 9
START, END = 1_279_497_600, 1_410_566_400
"""The site's first and last second: 2010-07-19 and 2014-09-13."""
DAY = 86_400

SCHEMA = """
CREATE TABLE users (id INTEGER PRIMARY KEY, reputation INTEGER NOT NULL, creation_date TIMESTAMP NOT NULL,
  views INTEGER NOT NULL, up_votes INTEGER NOT NULL, down_votes INTEGER NOT NULL);
CREATE TABLE posts (id INTEGER PRIMARY KEY, post_type_id SMALLINT NOT NULL, creation_date TIMESTAMP NOT NULL,
  score INTEGER NOT NULL, view_count INTEGER, owner_user_id INTEGER REFERENCES users (id), answer_count INTEGER,
  comment_count INTEGER NOT NULL, favorite_count INTEGER, last_editor_user_id INTEGER REFERENCES users (id));
CREATE TABLE votes (id INTEGER PRIMARY KEY, post_id INTEGER NOT NULL REFERENCES posts (id),
  vote_type_id SMALLINT NOT NULL, creation_date TIMESTAMP NOT NULL, user_id INTEGER REFERENCES users (id),
  bounty_amount SMALLINT);
CREATE TABLE comments (id INTEGER PRIMARY KEY, post_id INTEGER NOT NULL REFERENCES posts (id), score INTEGER NOT NULL,
  creation_date TIMESTAMP NOT NULL, user_id INTEGER REFERENCES users (id));
CREATE TABLE badges (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users (id), date TIMESTAMP NOT NULL);
CREATE TABLE post_links (id INTEGER PRIMARY KEY, creation_date TIMESTAMP NOT NULL, post_id INTEGER NOT NULL
  REFERENCES posts (id), related_post_id INTEGER NOT NULL REFERENCES posts (id), link_type_id SMALLINT NOT NULL);
"""


def write_stats(folder: Path, *, seed: int = 1) -> None:
    """Write the tables as Parquet, beside their schema.sql."""
    for name, columns in make_stats(np.random.default_rng(seed)).items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    (folder / "schema.sql").write_text(SCHEMA)


def make_stats(rng: np.random.Generator) -> dict[str, Table]:
    """The six tables; ids are numbered by date."""
    joined = START + ((END - START) * rng.beta(1.7, 1.1, USERS)).astype(np.int64)
    joined.sort()
    activity = _activity(joined, rng)
    posts_of = _counts(activity**0.93 * _noise(0.75, rng, USERS) + 0.16, POSTS * (1 - NO_OWNER), rng)
    badges_of = _counts(np.log1p(activity) ** 2.3 * _noise(0.6, rng, USERS) + 0.35, BADGES, rng)
    owner, made = _posts(joined, posts_of, rng)
    appeal = _noise(1.0, rng, POSTS) * (1 + activity[np.maximum(owner, 0)]) ** 0.12
    kind = _kinds(owner, activity, rng)
    comments_of = _counts(appeal**0.5 * _noise(0.75, rng, POSTS) * np.where(kind <= 2, 1, 0.02), COMMENTS, rng)
    votes_of = _counts(appeal**1.1 * _noise(0.35, rng, POSTS) * np.where(kind <= 2, 1, 0.1) + 0.12, VOTES, rng)
    comments = _comments(comments_of, owner, made, activity, rng)
    return {
        "users": _users(joined, activity, posts_of, rng),
        "posts": _post_table(owner, made, kind, appeal, votes_of, comments_of, activity, rng),
        "votes": _votes(votes_of, made, activity, rng),
        "comments": comments,
        "badges": _badges(badges_of, joined, rng),
        "post_links": _post_links(made, appeal, kind, rng),
    }


def _activity(joined: Ints, rng: np.random.Generator) -> Floats:
    """Mostly little, with a Pareto tail; more of those who came early."""
    early = 1 + 1.5 * (END - joined) / (END - START)
    tail = (1 - rng.random(USERS)) ** (-1 / 1.02) - 1
    return np.asarray(np.minimum(tail * early * _noise(0.4, rng, USERS), 6_000) * 0.2)


def _counts(rates: Floats, total: float, rng: np.random.Generator) -> Ints:
    """Numbers of rows with these relative means."""
    return rng.poisson(rates * (total / rates.sum())).astype(np.int64)


def _noise(deviation: float, rng: np.random.Generator, rows: int) -> Floats:
    return np.asarray(np.exp(deviation * rng.standard_normal(rows)))


def _posts(joined: Ints, posts_of: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Owners (-1 for none) and dates of posts, in the order of dates."""
    owner = np.repeat(np.arange(USERS), posts_of)[:POSTS]
    owner = np.concatenate([owner, np.full(POSTS - len(owner), -1)])
    since = np.where(owner < 0, START, joined[owner])
    made = since + ((END - since) * rng.beta(0.5, 1.3, POSTS)).astype(np.int64)
    order = np.argsort(made, kind="stable")
    return owner[order], made[order]


def _kinds(owner: Ints, activity: Floats, rng: np.random.Generator) -> Ints:
    """1 a question, 2 an answer, of the others few."""
    active = np.log1p(np.where(owner < 0, 1, activity[owner]))
    answers = 1 / (1 + np.exp(1.5 - 0.45 * active))
    kind = np.where(rng.random(POSTS) < answers, 2, 1)
    rare = rng.random(POSTS) < 0.012 * (1 + active / 4)
    return np.where(rare, rng.choice([3, 4, 5, 6, 7], POSTS, p=[0.03, 0.45, 0.45, 0.04, 0.03]), kind)


def _users(joined: Ints, activity: Floats, posts_of: Ints, rng: np.random.Generator) -> Table:
    active = activity * _noise(0.7, rng, USERS)
    reputation = 1 + (posts_of * rng.gamma(1.3, 11, USERS) + 6 * active**0.8).astype(np.int64)
    reputation += np.where(rng.random(USERS) < 0.22, 100, 0)
    views = rng.poisson(0.35 * reputation**0.62 * _noise(0.8, rng, USERS))
    ups = rng.poisson(active**1.05 * rng.gamma(0.5, 1.6, USERS))
    downs = rng.poisson(np.where(rng.random(USERS) < 0.05, 0.09 * ups, 0.004 * ups))
    return {
        "id": _ids(USERS),
        "reputation": _small(reputation),
        "creation_date": _dates(joined),
        "views": _small(views),
        "up_votes": _small(ups),
        "down_votes": _small(downs),
    }


def _post_table(
    owner: Ints,
    made: Ints,
    kind: Ints,
    appeal: Floats,
    votes_of: Ints,
    comments_of: Ints,
    activity: Floats,
    rng: np.random.Generator,
) -> Table:
    question = kind == 1
    score = np.rint(0.75 * votes_of * rng.beta(5, 2, POSTS) - rng.poisson(0.22, POSTS)).astype(np.int64)
    age = (END - made) / (END - START)
    views = 4 + rng.poisson(320 * appeal**0.9 * (0.15 + age) ** 1.2 * _noise(0.7, rng, POSTS))
    answers = rng.poisson(0.9 * appeal**0.25, POSTS)
    favourites = rng.poisson(0.3 * np.maximum(score, 0) * _noise(0.5, rng, POSTS))
    liked = question & ((favourites > 0) | (rng.random(POSTS) < 0.02))
    deleted = rng.random(POSTS) < 0.02
    return {
        "id": _ids(POSTS),
        "post_type_id": kind.astype(np.int16),
        "creation_date": _dates(made),
        "score": _small(score),
        "view_count": _or_null(views, question),
        "owner_user_id": _keys(owner),
        "answer_count": _or_null(answers, question),
        "comment_count": _small(np.maximum(comments_of - deleted, 0)),
        "favorite_count": _or_null(favourites, liked),
        "last_editor_user_id": _keys(_editors(owner, kind, activity, rng)),
    }


def _editors(owner: Ints, kind: Ints, activity: Floats, rng: np.random.Generator) -> Ints:
    """Half of the posts were edited: by their owners, or by some of few who tidy up."""
    tidy = activity**0.6 * _noise(1.1, rng, USERS) * np.where(rng.random(USERS) < 0.02, 8, 1)
    tidy = np.minimum(tidy, np.sort(tidy)[-4])
    someone = rng.choice(USERS, POSTS, p=_sharpened(tidy, TOP_EDITORS))
    own = (rng.random(POSTS) < SELF_EDITED) & (owner >= 0)
    edited = rng.random(POSTS) < np.where(kind == 1, EDITED + 0.13, np.where(kind == 2, EDITED - 0.12, 0.9))
    return np.where(edited, np.where(own, owner, someone), -1)


def _sharpened(weights: Floats, share: float) -> Floats:
    """Weights to the power that gives the ten largest this share."""
    low, high = 0.1, 4.0
    for _ in range(40):
        power = (low + high) / 2
        found = (weights / weights.max()) ** power
        found /= found.sum()
        if np.sort(found)[-10:].sum() < share:
            low = power
        else:
            high = power
    return np.asarray(found)


def _votes(votes_of: Ints, made: Ints, activity: Floats, rng: np.random.Generator) -> Table:
    post = np.repeat(np.arange(POSTS), votes_of)
    rows = len(post)
    kind = rng.choice(VOTE_TYPES, rows, p=VOTE_SHARES / VOTE_SHARES.sum())
    # Posts with many votes are favourites more often.
    extra = (kind == 2) & (rng.random(rows) < 0.02 * np.log1p(votes_of[post]) / 3)
    kind = np.where(extra, FAVOURITE, kind)
    named = np.isin(kind, [FAVOURITE, BOUNTY_START]) & (rng.random(rows) < 0.985)
    voters = activity**0.7 * _noise(1.0, rng, USERS)
    voter = rng.choice(USERS, rows, p=voters / voters.sum())
    bounty = rng.choice([50, 100, 150, 200, 250, 300, 400, 500], rows, p=[0.6, 0.2, 0.05, 0.06, 0.02, 0.02, 0.01, 0.04])
    when = _after(made[post], 0.35, rng) // DAY * DAY
    order = np.argsort(when, kind="stable")
    return {
        "id": _ids(rows),
        "post_id": _small(post[order] + 1),
        "vote_type_id": kind[order].astype(np.int16),
        "creation_date": _dates(when[order]),
        "user_id": _keys(np.where(named, voter, -1)[order]),
        "bounty_amount": _or_null(bounty, np.isin(kind, [BOUNTY_START, BOUNTY_END]), np.int16).take(pa.array(order)),
    }


def _comments(comments_of: Ints, owner: Ints, made: Ints, activity: Floats, rng: np.random.Generator) -> Table:
    post = np.repeat(np.arange(POSTS), comments_of)
    rows = len(post)
    talk = activity**0.9 * _noise(0.8, rng, USERS)
    someone = rng.choice(USERS, rows, p=talk / talk.sum())
    user = np.where((rng.random(rows) < OWN_COMMENT) & (owner[post] >= 0), owner[post], someone)
    user = np.where(rng.random(rows) < 0.017, -1, user)
    score = rng.poisson(0.33 * rng.gamma(0.4, 2.5, rows) * (1 + np.log1p(activity[user]) / 5))
    when = _after(made[post], 0.06, rng)
    order = np.argsort(when, kind="stable")
    return {
        "id": _ids(rows),
        "post_id": _small(post[order] + 1),
        "score": _small(score[order]),
        "creation_date": _dates(when[order]),
        "user_id": _keys(user[order]),
    }


def _badges(badges_of: Ints, joined: Ints, rng: np.random.Generator) -> Table:
    user = np.repeat(np.arange(USERS), badges_of)
    when = _after(joined[user], 0.25, rng)
    order = np.argsort(when, kind="stable")
    return {"id": _ids(len(user)), "user_id": _small(user[order] + 1), "date": _dates(when[order])}


def _post_links(made: Ints, appeal: Floats, kind: Ints, rng: np.random.Generator) -> Table:
    """From younger posts to those with appeal; few posts have several."""
    source = np.where(kind == 1, 1.0, 0.08) * appeal**0.2 * _noise(1.0, rng, POSTS)
    known = np.where(kind == 1, 1.0, 0.05) * appeal**1.3 * _noise(0.8, rng, POSTS)
    post = np.repeat(np.arange(POSTS), _counts(source, POST_LINKS, rng))
    related = rng.choice(POSTS, len(post), p=known / known.sum())
    when = _after(np.maximum(made[post], made[related]), 0.2, rng)
    order = np.argsort(when, kind="stable")
    return {
        "id": _ids(len(post)),
        "creation_date": _dates(when[order]),
        "post_id": _small(post[order] + 1),
        "related_post_id": _small(related[order] + 1),
        "link_type_id": np.where(rng.random(len(post)) < 0.1, 3, 1).astype(np.int16),
    }


def _after(since: Ints, part: float, rng: np.random.Generator) -> Ints:
    """Dates between these and the end, near the first."""
    return np.asarray(since + ((END - since) * rng.beta(0.35, 0.35 / part, len(since))).astype(np.int64))


def _ids(rows: int) -> NDArray[np.int32]:
    return np.arange(1, rows + 1, dtype=np.int32)


def _small(values: Ints) -> NDArray[np.int32]:
    return values.astype(np.int32)


def _dates(seconds: Ints) -> NDArray[np.datetime64]:
    return seconds.astype("datetime64[s]").astype("datetime64[us]")


def _keys(rows: Ints) -> pa.Array:
    """Ids of rows, NULL for -1."""
    return _or_null(rows + 1, rows >= 0)


def _or_null(values: Ints, there: NDArray[np.bool_], kind: type[np.signedinteger[Any]] = np.int32) -> pa.Array:
    return pa.array(values.astype(kind), mask=~there)
