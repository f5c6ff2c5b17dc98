"""Any two kinds of relations in one database: every condition holds in every row, or fit refuses in time."""

from itertools import combinations_with_replacement
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from privbench.errors import PrivBenchError
from privbench.fitting import fit as fit_module
from privbench.fitting.fit import fit
from privbench.generation import blocks, rows
from privbench.generation.generate import generate
from privbench.io.base import Format
from privbench.privacy.vault import Vault
from privbench.schema.spec import Spec

from ..seeded import SeededEntropy
from .checks import broken_promises, loaded, read_bundle
from .random_pairs import KINDS, base, broken_conditions
from .random_pairs import rows as real_rows

PAIRS = [tuple(sorted((a.__name__, b.__name__))) for a, b in combinations_with_replacement(KINDS, 2)]
BY_NAME = {kind.__name__: kind for kind in KINDS}
FAST = [("aggregate", "rule"), ("formula", "numbered_by"), ("rank", "rule"), ("row_count", "rule")]


def walk(names: tuple[str, ...], seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """How it went: "" if all conditions hold, or why fit refused, before anything was spent."""
    rng = np.random.default_rng((crc32(" ".join(names).encode()), seed))
    words = base()
    for name in rng.permutation(list(names)).tolist():
        BY_NAME[name](rng, words)
    source = real_rows(rng, orphans="orphans" in words)
    spent = []

    class Noted(Vault):
        def __init__(self, *given: object, **more: object) -> None:
            spent.append(True)
            super().__init__(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(fit_module, "Vault", Noted)
    try:
        spec = Spec.model_validate(words)
        given = {name: rows for name, rows in source.items() if name in spec.tables}
        model = fit(spec, source=given, epsilon=500, entropy=SeededEntropy(seed))
    except (PrivBenchError, ValueError) as error:
        return pytest.fail(f"spent in vain: {error}") if spent else str(error)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 50 if seed % 2 else 65_536)
    monkeypatch.setattr(rows, "BLOCK_ROWS", 50 if seed % 2 else 65_536)
    generate(model, folder / "bundle", seed=seed, scale=0.7 if seed % 2 else 1.5)
    published = model.protection.schema.published()
    tables = read_bundle(folder / "bundle", published, Format.PARQUET)
    broken = [*broken_promises(published, tables), *broken_conditions(model.spec, model.protection, tables)]
    assert not broken, broken
    loaded(folder / "bundle").close()
    return ""


@pytest.mark.parametrize("names", FAST, ids=" ".join)
def test_a_few_pairs(names: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [walk(names, seed, tmp_path / str(seed), monkeypatch) for seed in range(2)]
    assert "" in ends, ends


@pytest.mark.slow
@pytest.mark.parametrize("first", sorted(BY_NAME))
def test_all_pairs(first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [names for names in PAIRS if names[0] == first]
    ends = [walk(names, len(" ".join(names)), tmp_path / " ".join(names), monkeypatch) for names in pairs]
    assert ends.count("") > len(ends) // 2, ends
