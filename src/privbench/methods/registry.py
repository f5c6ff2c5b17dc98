"""The methods by name. A new one is added here, and to the choices of `--method`."""

from collections.abc import Mapping
from typing import Any

from privbench.methods.independent import INDEPENDENT
from privbench.methods.method import Method
from privbench.methods.paper.method import PAPER
from privbench.methods.tree.method import TREE

DEFAULT = TREE.name
METHODS: Mapping[str, Method[Any]] = {method.name: method for method in (TREE, PAPER, INDEPENDENT)}
