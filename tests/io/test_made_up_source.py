"""A made-up source and a made-up format walk the whole way, each with one module and one line in a registry."""

import json
from collections import Counter
from pathlib import Path

import pytest

import privbench
from privbench.cli.commands import cli
from privbench.errors import SourceError
from privbench.io.open import SOURCES, open_source
from privbench.io.sinks import SINKS

from .made_up import JSON_LINES, NUMBERS, PREFIX

LOCATION = f"{PREFIX}300"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privbench.io.open.SOURCES", [*SOURCES, NUMBERS])
    monkeypatch.setattr("privbench.io.sinks.SINKS", [*SINKS, JSON_LINES])


def test_the_walk(tmp_path: Path) -> None:
    spec = privbench.draft(LOCATION, unit="person")
    assert spec.source == LOCATION
    privbench.write_spec(spec, tmp_path / "spec.yaml")
    model = privbench.fit(tmp_path / "spec.yaml", epsilon=3)
    rows = privbench.generate(model, tmp_path / "out", seed=1, format="jsonl").rows
    lines = [json.loads(line) for line in (tmp_path / "out/data/rows.jsonl").read_text().splitlines()]
    assert Counter(line["table"] for line in lines) == rows
    assert rows["person"] == 300
    verdict = privbench.verify(tmp_path / "out")
    assert (verdict.status, verdict.problems) == ("verified", ())
    assert "each says which table it is of, such as person." in (tmp_path / "out/README.md").read_text()


def test_the_command_takes_both(tmp_path: Path) -> None:
    words = ["synth", LOCATION, "--unit", "person", "--epsilon", "3", "--to", "jsonl", "-o", str(tmp_path / "out")]
    cli.main(words, standalone_mode=False)
    assert (tmp_path / "out/data/rows.jsonl").stat().st_size


def test_the_message_names_it() -> None:
    with pytest.raises(SourceError, match=r"nowhere: does not exist.* or made-up numbers"):
        open_source("nowhere")
