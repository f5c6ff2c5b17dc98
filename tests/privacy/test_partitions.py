"""Partitions of rows: centres have the same columns."""

import pytest

from privbench.privacy.partitions import Centres


def test_partitions_check_themselves() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Centres(table="t", rows_per_entity=0, centres=())
    with pytest.raises(ValueError, match="same columns"):
        Centres(table="t", rows_per_entity=1, centres=({"age": (1,)}, {"sex": (1,)}))
