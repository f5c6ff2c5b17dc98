from privbench.report.ledger import budget_bars, ledger_section

from ..privacy.trees import good, good_rho


def test_the_picture_counts_what_the_ledger_counts() -> None:
    page = ledger_section(good_rho())
    assert "ε = 3.2, δ = 1e-09" in page
    assert "It follows from ρ = 0.1361 (zCDP)" in page
    assert '<th class="n">ρ</th>' in page
    assert "in parallel" not in page
    pure = ledger_section(good())
    assert '<th class="n">ε</th>' in pure
    assert "δ" not in pure
    assert "ρ" not in pure


def test_bars_add_up_to_rho() -> None:
    root = budget_bars(good_rho())
    assert root.cost == sum(bar.cost for bar in root.below) > 0
