"""Fit on one screen: spec and source to codes, codes into the vault, the method on the vault, the model out.

Start reading here. Everything above the ledger runs before a budget exists and may tell the publisher what is wrong
with the data; everything below it sees noisy answers alone. Domains that the spec leaves to the budget come first.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

from privbench import __version__
from privbench.errors import SpecError
from privbench.fitting.derived import check_counted, claims_to_test, places_of, with_tested
from privbench.fitting.domains import (
    check_wanted,
    open_domain_vault,
    paid_before,
    threshold_part,
    wanted_types,
    with_codes,
    with_found,
)
from privbench.fitting.facts import known_rows, public_facts, sizes_are_public
from privbench.fitting.method import Chosen, method_settings, with_method
from privbench.fitting.plan import check_budget
from privbench.fitting.promise import check_method, parse_delta, parse_epsilon
from privbench.fitting.reading import ReadDatabase, read_database
from privbench.io.open import open_source
from privbench.methods.method import Progress, silent
from privbench.methods.tree.method import TREE
from privbench.model.arguments import find_source, spec_of
from privbench.model.model import Model, compile_codecs
from privbench.model.order import generation_order
from privbench.model.public_counts import count_bins
from privbench.privacy.noise import Entropy, OsEntropy
from privbench.privacy.receipt import PublicFacts, make_receipt, open_ledger
from privbench.privacy.vault import Vault
from privbench.schema.spec import Spec


def fit(
    spec: Spec | Path | str,
    *,
    source: Path | str | None = None,
    epsilon: Fraction | float | str,
    delta: Fraction | float | str = 0,
    method: str | None = None,
    entropy: Entropy | None = None,
    progress: Progress = silent,
) -> Model:
    """Learn a model of the database that a spec or spec file describes, spending epsilon.

    `source` overrides the spec's, which is tried from the working directory and then from the folder of the spec
    file. The noise comes from the operating system; a test may pass its own `entropy`, and the model is then stamped
    "not private". With a `delta` (such as "1e-9") epsilon may fail with that chance, and noise is Gaussian.

    Example::

        model = privbench.fit("spec.yaml", epsilon="3.2")
    """
    budget, chance = parse_epsilon(epsilon), parse_delta(delta)
    spec, folder = spec_of(spec)
    spec = paid_before(with_method(spec, method))
    chosen = method_settings(spec)
    check_method(chosen.method, chance)
    public_sizes = sizes_are_public(spec, chosen.settings)
    protection = spec.protection()
    check_wanted(spec, protection, chance)
    wanted = wanted_types(spec, protection)
    generation_order(spec, protection, owners_first=chosen.method is TREE)
    check_counted(spec, protection)
    claims = claims_to_test(spec, protection, chosen)
    raw = {*wanted, *places_of(protection, claims)}
    codecs = compile_codecs(spec, protection, without=raw)
    if source is None:
        if spec.source is None:
            raise SpecError("no source: the spec names none. Give one with `--source`.")
        source = find_source(spec.source, folder)
    with open_source(source) as opened:
        read = read_database(
            opened, protection, codecs, orphans_as_null=spec.orphans.value == "null", progress=progress
        )
    thresholds = threshold_part(chance, spec, protection)
    ledger = open_ledger(budget, chance, protection.neighbours, thresholds=thresholds)
    check_budget(spec, protection, chosen, ledger, known_rows(protection, read.rows, public_sizes=public_sizes))
    entropy = entropy or OsEntropy()
    if claims:
        progress("testing what columns equal", 0, 1)
        spec = with_tested(spec, protection, claims, read, ledger=ledger, entropy=entropy)
        protection = spec.protection()
        wanted = wanted_types(spec, protection)
    if wanted:
        progress("finding domains", 0, 1)
        spec = with_found(spec, protection, open_domain_vault(wanted, read, ledger=ledger, entropy=entropy))
    if raw:
        codecs = compile_codecs(spec, protection)
        read = with_codes(read, codecs)
    counts = count_bins(protection, read.public, read.entity_keys)
    facts = public_facts(spec, protection, codecs, read.rows, public_sizes=public_sizes, public_counts=counts)
    vault = Vault(facts, read.private, ledger=ledger, entropy=entropy)
    return release(vault, spec, read, chosen=chosen, epsilon=budget, delta=chance, progress=progress)


def release(
    vault: Vault,
    spec: Spec,
    read: ReadDatabase,
    *,
    chosen: Chosen,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    progress: Progress,
) -> Model:
    """Run the method on the vault and put the model together. Reads public parts of `read` alone."""
    tables = chosen.method.learn(vault, chosen.settings, progress)
    protection = spec.protection()
    receipt = make_receipt(
        protection=protection,
        facts=PublicFacts(
            domains=spec.origins(protection),
            sizes={t: f.rows for t, f in vault.facts.tables.items() if f.rows is not None},
            rows_per_entity={t: vault.cap_or_none(t) for t in vault.facts.tables},
            declared_caps=[t for t, f in vault.facts.tables.items() if f.cap is not None],
            orphans=spec.orphans.value,
            parameters={"method": chosen.method.name, **_plain(chosen.settings)},
        ),
        epsilon=epsilon,
        delta=delta,
        ledger=vault.ledger,
        entropy=vault.entropy,
        software=f"privbench {__version__}",
    )
    return Model(
        spec=spec.published(),
        tables=tables,
        public=read.public,
        entity_keys=read.entity_keys,
        receipt=receipt,
    )


def _plain(settings: Any) -> dict[str, Any]:
    """Settings as the receipt writes them; those that came later only where they are not what was before."""
    plain = {}
    for name, field in settings.__dataclass_fields__.items():
        value = getattr(settings, name)
        if field.metadata.get("later") and value == field.default:
            continue
        plain[name] = str(value) if isinstance(value, Fraction) else value
    return plain
