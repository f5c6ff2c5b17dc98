"""What a model publishes of its spec: nothing of what was dropped, nothing that nothing uses."""

from pathlib import Path

import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.model.file import save_model
from privbench.model.verify import verify
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.schema.spec import Spec


def shop(folder: Path, secret: str) -> Spec:
    folder.mkdir()
    rows = "\n".join(f"{i},{'x' if i % 2 else secret},{i % 5}" for i in range(64))
    (folder / "person.csv").write_text(f"id,diagnosis,age\n{rows}\n")
    (folder / "note.csv").write_text("id,person,kind\n" + "\n".join(f"{i},{i},{secret}" for i in range(64)) + "\n")
    (folder / "schema.sql").write_text(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, diagnosis VARCHAR, age INTEGER);"
        "CREATE TABLE note (id INTEGER PRIMARY KEY, person INTEGER REFERENCES person (id), kind VARCHAR);"
    )
    return draft(folder, unit="person", domains="data")


def dropped(spec: Spec, what: str) -> Spec:
    plain = spec.model_dump(mode="json", by_alias=True)
    if what == "column":
        plain["tables"]["person"]["columns"]["diagnosis"]["drop"] = True
        plain["tables"]["note"]["columns"]["kind"]["drop"] = True
    else:
        plain["tables"]["note"] |= {"drop": True, "owner": None}
        plain["tables"]["person"]["columns"]["diagnosis"]["drop"] = True
    return Spec.model_validate(plain)


@pytest.mark.parametrize("what", ["column", "table"])
def test_dropped_domains_do_not_reach_the_model(tmp_path: Path, what: str) -> None:
    models = []
    for secret in ("alice", "bob"):
        spec = dropped(shop(tmp_path / secret, secret), what)
        model = fit(spec, epsilon=1, entropy=FixedEntropy(3))
        save_model(model, tmp_path / f"{secret}.model")
        assert secret not in model.spec.model_dump_json()
        models.append((tmp_path / f"{secret}.model").read_bytes())
    assert models[0] == models[1]


def test_a_type_guessed_from_csv_values_is_part_of_the_condition(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "t.csv").write_text("flag\n" + "true\nfalse\n" * 40)
    model = fit(draft(tmp_path / "d", domains="data"), epsilon=1)
    save_model(model, tmp_path / "m.model")
    verdict = verify(tmp_path / "m.model")
    assert verdict.status == "conditional"
    assert verdict.condition is not None
    assert "t.flag" in verdict.condition
