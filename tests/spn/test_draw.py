from collections.abc import Callable

import numpy as np

from privbench.spn.clique import CliqueTree, Conditional, Given
from privbench.spn.draw import tree_text
from privbench.spn.feature_names import RANK, owner_column
from privbench.spn.nodes import Leaf, Node, Product, Sum

GOLDEN = """\
product over 3 columns
├── sum over 2 columns
│   ├── 37.0% product over 2 columns
│   │   ├── city: Oslo 60.0%, Rome 40.0%
│   │   └── age: 20..39 50.0%, 0..19 30.0%, 40..59 15.0%, 2 more
│   └── 63.0% product over 2 columns
│       ├── city: Rome 100.0%, Oslo 0.0%
│       └── age: uniform over 5 codes
└── paid: 1 75.0%, 0 25.0%"""


def leaf(column: str, *counts: float) -> Leaf:
    return Leaf(column=column, counts=np.array(counts))


def test_the_drawing() -> None:
    left = Product(children=(leaf("city", 6, 4), leaf("age", 30, 50, 15, 5, 0)))
    right = Product(children=(leaf("city", 0, 9), leaf("age", 0, 0, 0, 0, 0)))
    mixed = Sum(children=(left, right), weights=np.array([0.37, 0.63]))
    node = Product(children=(mixed, leaf("paid", 1, 3)))
    labels = {"city": ["Oslo", "Rome"], "age": ["0..19", "20..39", "40..59", "60..79", "NULL"]}
    assert tree_text(node, labels=labels) == GOLDEN


CLIQUES = """\
product over 4 columns
├── paid: 1 75.0%, 0 25.0%
└── clique tree over 3 columns, given #owner age, #rank
    ├── city given #owner age (1.00 bits): Oslo 50.0%, Rome 50.0%
    ├── sex in 2 bins: m 50.0%, f 25.0%, NULL 25.0%
    └── flag given sex (0.05 bits), #rank (0.00 bits): 1 62.5%, 0 37.5%"""


def clique_tree() -> CliqueTree:
    city = Conditional(
        column="city", bins=np.arange(2), counts=np.ones(2), parents=(owner_column("age"),), factors=(np.eye(2),)
    )
    sex = Conditional(column="sex", bins=np.array([0, 1, 1]), counts=np.array([2.0, 1.0, 1.0]))
    factors = (np.ones((1, 2)), np.array([[1.0, 3.0], [1.0, 1.0]]))
    flag = Conditional(column="flag", bins=np.arange(2), counts=np.ones(2), parents=(RANK, "sex"), factors=factors)
    known = (Given(column=owner_column("age"), bins=np.arange(2)), Given(column=RANK, bins=np.zeros(1, np.int64)))
    return CliqueTree(
        columns=(city, sex, flag), given=known, contexts=np.array([[0, 0], [1, 0]]), weights=np.array([0.5, 0.5])
    )


def test_a_clique_tree_shows_parents_and_dependence() -> None:
    labels = {"city": ["Oslo", "Rome"], "sex": ["m", "f", "NULL"]}
    node = Product(children=(leaf("paid", 1, 3), clique_tree()))
    assert tree_text(node, labels=labels) == CLIQUES
    assert tree_text(node, max_lines=2).splitlines()[-1] == "... 4 more nodes"


def test_a_long_drawing_is_cut_and_says_so() -> None:
    node = Product(children=tuple(leaf(f"c{i}", 1) for i in range(9)))
    assert tree_text(node, max_lines=3).splitlines() == [
        "product over 9 columns",
        "├── c0: 0 100.0%",
        "├── c1: 0 100.0%",
        "... 7 more nodes",
    ]


def test_names_cannot_steer_the_terminal() -> None:
    text = tree_text(leaf("a\x1b[2J\n", 1, 2), labels={"a\x1b[2J\n": ["é\u202e", "[" + "x" * 80 + ")"]})
    assert text == "a\\x1b[2J\\n: " + "[" + "x" * 29 + "..." + "x" * 29 + ") 66.7%, é\\u202e 33.3%"


def test_deep_networks_are_drawn(deep: Callable[[int], Node]) -> None:
    text = tree_text(deep(2000))
    assert text.count("\n") == 400
    assert text.endswith("... 2,101 more nodes")
