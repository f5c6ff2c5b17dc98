"""Made-up text of few characters: it repeats where it may, and is refused before anything is spent where it may not."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privbench
from privbench.errors import SpecError
from privbench.schema.spec import Spec


def _spec(kind: str, **words: Any) -> Spec:
    text = {"type": kind, "null": False, "domain": {"text": [1, 2] if "1" in kind else [2, 3]}}
    columns = {"id": {"type": "INTEGER", "null": False}, "k": {"type": "TINYINT", "domain": {"range": [0, 99]}}}
    return Spec.model_validate(
        {"unit": "t", "tables": {"t": {"key": ["id"], "columns": columns | {"x": text}, **words}}}
    )


def _rows(count: int) -> dict[str, pa.Table]:
    number = list(range(count))
    letters = [chr(0x4E00 + i) for i in number]
    return {"t": pa.table({"id": number, "k": pa.array([i % 90 for i in number], pa.int8()), "x": letters})}


@pytest.mark.parametrize("kind", ["CHAR(1)", "VARCHAR(1)", "VARCHAR(2)"])
@pytest.mark.parametrize("words", [{}, {"rules": ["x LIKE 'A%'"]}, {"unique": [["k", "x"]]}])
def test_text_that_may_repeat_does(kind: str, words: dict[str, Any], tmp_path: Path) -> None:
    source = _rows(1500)
    if "rules" in words:
        source = {"t": source["t"].set_column(2, "x", pa.array(["A"] * 1500))}
    model = privbench.fit(_spec(kind, **words), source=source, epsilon="5")
    rows = privbench.generate(model, tmp_path / "b", seed=1).rows["t"]
    made = pq.read_table(tmp_path / "b" / "data" / "t.parquet")
    assert rows == 1500
    assert len(made.column("x").unique()) < 1500
    if "unique" in words:
        assert len(made.group_by(["k", "x"]).aggregate([])) == 1500


@pytest.mark.parametrize(("words", "kind"), [({"unique": [["x"]]}, "CHAR(1)"), ({"key": ["x"]}, "VARCHAR(1)")])
def test_text_that_must_not_repeat_is_refused_where_there_is_not_enough_of_it(words: dict[str, Any], kind: str) -> None:
    for rows, fits in ((36, True), (37, False)):
        if fits:
            privbench.fit(_spec(kind, **words), source=_rows(rows), epsilon="5")
            continue
        with pytest.raises(SpecError, match=r"t.x: must not repeat, but only 36 different values .* 37 rows: of"):
            privbench.fit(_spec(kind, **words), source=_rows(rows), epsilon="5")
