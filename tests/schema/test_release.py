"""Earlier releases in a spec: named where a domain or computed column came out of another fit, listed with cost."""

from pathlib import Path
from typing import Any

import pytest

from privbench.errors import SpecError
from privbench.schema.computed import ComputedOrigin
from privbench.schema.domain import Origin, Range
from privbench.schema.expression import Expression
from privbench.schema.release import receipt_digest, release_of
from privbench.schema.spec import Spec, read_spec, write_spec
from privbench.schema.unit import Neighbours

RECEIPT: dict[str, Any] = {"epsilon": "16/5", "delta": "0/1", "neighbours": "replace", "stamp": "né"}
DIGEST = receipt_digest(RECEIPT)
LISTED = f"releases: [{{receipt: '{DIGEST}', epsilon: 16/5, neighbours: replace}}]\n"


def spec() -> Spec:
    plain = {
        "unit": "home",
        "tables": {
            "home": {
                "key": ["id"],
                "columns": {
                    "id": {"type": "INTEGER"},
                    "rooms": {"type": "INTEGER", "domain": {"range": [1, 9]}},
                    "size": {"type": "INTEGER", "domain": "private"},
                    "persons": {"type": "INTEGER", "domain": "private"},
                },
            },
            "person": {
                "foreign_keys": [{"columns": ["home"], "table": "home", "references": ["id"]}],
                "columns": {"home": {"type": "INTEGER"}},
            },
        },
    }
    return Spec.model_validate(plain)


def fitted() -> Spec:
    """What a model publishes whose fit found a domain and a computed column."""
    domain = {("home", "size"): (Range(range=(0, 255)), Origin.PRIVATE)}
    return (
        spec().with_domains(domain).with_computed({("home", "persons"): Expression(sql="COUNT(person.*)")}).published()
    )


def column(words: str, *, above: str = "") -> str:
    return f"{above}tables: {{t: {{columns: {{c: {{type: INTEGER, {words}}}}}}}}}\n"


def test_what_a_fit_found_becomes_an_earlier_release() -> None:
    again = fitted().for_reuse(RECEIPT)
    assert again.earlier_releases() == (release_of(RECEIPT),)
    assert (again.column("home", "size").origin, again.column("home", "size").release) == (Origin.EARLIER, DIGEST)
    column = again.computed_columns(again.protection())["home", "persons"]
    assert (column.computed, column.computed_origin, column.release) == (
        Expression(sql="COUNT(person.*)"),
        ComputedOrigin.EARLIER,
        DIGEST,
    )
    assert again.column("home", "rooms") == spec().column("home", "rooms")
    assert again.origins(again.protection()) == {
        ("home", "rooms"): Origin.DECLARED,
        ("home", "size"): Origin.EARLIER,
    }
    again.check_reuse()
    assert again.wanted(again.protection()) == ()


def test_releases_add_up_over_fits_and_stay_what_they_were() -> None:
    second = fitted().for_reuse(RECEIPT)
    other = {**RECEIPT, "epsilon": "1/1", "delta": "1/1000000000", "neighbours": "add-remove"}
    assert second.for_reuse(other) == second
    found = second.with_domains({("home", "rooms"): (Range(range=(0, 7)), Origin.PRIVATE)})
    third = found.published().for_reuse(other)
    assert third.earlier_releases() == (release_of(RECEIPT), release_of(other))
    assert third.column("home", "size").release == DIGEST
    assert third.column("home", "rooms").release == receipt_digest(other)
    assert third.releases[1].neighbours is Neighbours.ADD_REMOVE


def test_found_again_is_no_longer_from_the_earlier_release() -> None:
    again = fitted().for_reuse(RECEIPT).with_domains({("home", "size"): (Range(range=(0, 7)), Origin.PRIVATE)})
    assert again.column("home", "size").release is None
    assert Spec.model_validate(again.model_dump(mode="json", by_alias=True)) == again


def test_a_spec_file_keeps_releases(tmp_path: Path) -> None:
    again = fitted().for_reuse(RECEIPT)
    write_spec(again, tmp_path / "spec.yaml")
    assert read_spec(tmp_path / "spec.yaml") == again
    assert Spec.model_validate_json(again.model_dump_json(by_alias=True)) == again


def test_a_spec_without_releases_says_nothing_of_them(tmp_path: Path) -> None:
    write_spec(spec(), tmp_path / "spec.yaml")
    assert "release" not in (tmp_path / "spec.yaml").read_text()


def test_what_was_found_by_a_fit_that_is_not_named_is_refused() -> None:
    spec().check_reuse()
    with pytest.raises(SpecError, match=r"^home\.size, home\.persons: found by an earlier fit"):
        fitted().check_reuse()


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (column(f"domain: {{range: [0, 9]}}, from: earlier release, release: '{DIGEST}'"), "columns.c.release"),
        (column("domain: {range: [0, 9]}, from: earlier release", above=LISTED), "columns.c"),
        (column(f"from: earlier release, release: '{DIGEST}'", above=LISTED), "columns.c"),
        (column(f"domain: {{range: [0, 9]}}, release: '{DIGEST}'", above=LISTED), "columns.c"),
        (column("domain: {range: [0, 9]}, computed_from: found"), "columns.c"),
        (column("computed: ROW_NUMBER(), computed_from: earlier release", above=LISTED), "columns.c"),
        (column("computed: ROW_NUMBER(), computed_from: private"), "columns.c.computed_from"),
        (column(f"domain: {{range: [0, 9]}}, from: earlier release, release: {DIGEST[:-1]}g"), "columns.c.release"),
        (column("drop: true", above=LISTED.replace(DIGEST, DIGEST.upper())), "releases.0.receipt"),
        (column("drop: true", above=LISTED.replace(DIGEST, f"{DIGEST}0")), "releases.0.receipt"),
        (column("drop: true", above=LISTED.replace("16/5", "32/10")), "releases.0.epsilon"),
        (column("drop: true", above=LISTED.replace("16/5", "1/0")), "releases.0.epsilon"),
        (column("drop: true", above=LISTED.replace("16/5", "0/1")), "releases.0"),
        (column("drop: true", above=LISTED.replace("16/5", "3.2")), "releases.0.epsilon"),
        (column("drop: true", above=LISTED.replace("16/5,", "16/5, delta: 1/1,")), "releases.0"),
        (column("drop: true", above=LISTED.replace("16/5,", "16/5, cost: 1/1,")), "releases.0.cost"),
        (column("drop: true", above=LISTED.replace("replace}", "other}")), "releases.0.neighbours"),
        (column("drop: true", above=LISTED.replace("}]", f"}}, {LISTED[11:-2]}]")), "releases.1.receipt"),
    ],
)
def test_a_wrong_release_is_told_with_its_place(tmp_path: Path, text: str, where: str) -> None:
    (tmp_path / "spec.yaml").write_text(text)
    with pytest.raises(SpecError) as raised:
        read_spec(tmp_path / "spec.yaml")
    [line] = str(raised.value).splitlines()[1:]
    assert f"{where}: " in line
