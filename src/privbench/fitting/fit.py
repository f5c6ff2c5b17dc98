"""Fit on one screen: spec and source to codes, codes into the vault, the method on the vault, the model out.

Start reading here. Everything above the ledger runs before a budget exists and may tell the publisher what is wrong
with the data; everything below it sees noisy answers alone: candidate dependencies are tested first, then domains are
found that the spec leaves to the budget, then the method learns.
"""

import logging
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from privbench import __version__
from privbench.encode.codec import Codec, Codecs
from privbench.errors import SpecError
from privbench.fitting.budget_record import check_limit, open_account, parse_limit, tell_total
from privbench.fitting.determined import check_cells, determined_columns, with_maps
from privbench.fitting.domains import threshold_part, wanted_types, with_found
from privbench.fitting.engines import Place, place_of
from privbench.fitting.finding import candidates_to_test, places_of, with_dependencies
from privbench.fitting.key_checks import check_room
from privbench.fitting.lists import with_lists_that_pay
from privbench.fitting.plan import check_budget
from privbench.fitting.prepare import Prepared, prepare
from privbench.fitting.promise import parse_delta, parse_epsilon
from privbench.fitting.reading import ReadDatabase
from privbench.fitting.rules import check_rules_can_hold
from privbench.io.base import Source
from privbench.io.given import Given, Located, with_options
from privbench.methods.method import Progress, silent
from privbench.model.arguments import find_source, spec_of
from privbench.model.chosen import Chosen
from privbench.model.facts import known_rows, public_facts, stated_facts
from privbench.model.model import Model, compile_codecs
from privbench.model.public_counts import count_bins
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import Facts
from privbench.privacy.noise import Entropy, OsEntropy
from privbench.privacy.receipt import PublicFacts, make_receipt, open_ledger
from privbench.privacy.vault import Vault
from privbench.schema.people import people_warnings
from privbench.schema.spec import Spec
from privbench.schema.unit import Protection

_logger = logging.getLogger(__name__)

Rehearse = Callable[[Prepared, Source, Fraction, Progress], None]
"""Walks the whole way once on made-up rows, given a spec that can be fitted, the source of public rows and delta."""


def fit(
    spec: Spec | Path | str,
    *,
    source: Given | None = None,
    epsilon: Fraction | float | str,
    delta: Fraction | float | str = 0,
    method: str | None = None,
    budget_limit: Fraction | float | str | None = None,
    memory: str | int | None = None,
    engine: str = "local",
    master: str | None = None,
    out: Path | str | None = None,
    entropy: Entropy | None = None,
    rehearse: Rehearse | None = None,
    progress: Progress = silent,
) -> Model:
    """Learn a model of the database that a spec or spec file describes, spending epsilon; see `privbench.fit`.

    `rehearse` is called when the spec is known to be sound and the source is open, before any private row is read.
    """
    budget, chance, limit = parse_epsilon(epsilon), parse_delta(delta), parse_limit(budget_limit)
    place = place_of(engine, master=master, memory=memory)
    given, folder = spec_of(spec)
    located = _source(given, folder, source)
    with place:  # which lets go of all rows at the end, however it comes
        if given.drafted_lists():
            given = _with_lists(given, located, place, epsilon=budget)
        prepared = prepare(given, method=method, delta=chance)
        place.check(prepared)
        for line in people_warnings(prepared.protection):
            _logger.warning("%s", line)
        codecs = known_codecs(prepared)
        with place.open(located) as opened:
            check_limit(located, epsilon=budget, neighbours=prepared.protection.neighbours, limit=limit)
            account = open_account(located, opened.schema(), limit=limit)
            if rehearse is not None:
                rehearse(prepared, opened, chance, progress)
            read = place.read(opened, prepared, codecs, progress)
        _check_rooms(prepared, read, codecs)
        model = learn(prepared, read, epsilon=budget, delta=chance, entropy=entropy or OsEntropy(), progress=progress)
        account.append(model.receipt, out=out)
        tell_total(model.receipt)
        return model


def known_codecs(prepared: Prepared) -> dict[str, dict[str, Codec]]:
    """The codecs of columns whose domain is known before anything is spent; raises SpecError where rules leave none."""
    codecs = compile_codecs(prepared.spec, prepared.protection, without=_uncoded(prepared))
    check_rules_can_hold(prepared.spec, prepared.protection, codecs)
    check_cells(prepared.protection, codecs)
    return codecs


def learn(
    prepared: Prepared,
    read: ReadDatabase,
    *,
    epsilon: Fraction,
    delta: Fraction,
    entropy: Entropy,
    progress: Progress,
) -> Model:
    """Spend a budget on the rows that were read. What was spent is in the receipt of the model."""
    spec, chosen, protection = prepared.spec, prepared.chosen, prepared.protection
    candidates, wanted = candidates_to_test(spec, protection, chosen), wanted_types(spec, protection)
    ledger = open_ledger(epsilon, delta, protection.neighbours, thresholds=threshold_part(delta, spec, protection))
    known = known_rows(protection, read.rows, public_sizes=prepared.public_sizes)
    check_budget(spec, protection, chosen, ledger, known)
    vault = Vault(NumpyEngine(read.parts, entropy=entropy), ledger=ledger, entropy=entropy)
    if candidates:
        progress("finding what columns depend on", 0, 1)
        spec = with_dependencies(spec, protection, candidates, vault, entities=read.rows[protection.entity])
        protection = spec.protection()
        wanted = wanted_types(spec, protection)
    if wanted:
        progress("finding domains", 0, 1)
        spec = with_found(spec, protection, vault, wanted)
    codecs = compile_codecs(spec, protection)
    if _uncoded(prepared):
        vault.encode(codecs)
    if determined_columns(protection):
        progress("finding what columns determine", 0, 1)
        spec = with_maps(spec, protection, codecs, vault)
        protection, codecs = _compiled(spec)
    counts = count_bins(protection, read.public, read.entity_keys)
    facts = public_facts(spec, protection, codecs, read.rows, public_sizes=prepared.public_sizes, public_counts=counts)
    tables = chosen.method.learn(vault, facts, chosen.settings, progress)
    receipt = receipt_of(vault, facts, spec, chosen=chosen, epsilon=epsilon, delta=delta)
    return Model(
        spec=spec.published(), tables=tables, public=read.public, entity_keys=read.entity_keys, receipt=receipt
    )


def _uncoded(prepared: Prepared) -> set[tuple[str, str]]:
    """The columns that are read as values, since it is found with budget how they are coded."""
    candidates = candidates_to_test(prepared.spec, prepared.protection, prepared.chosen)
    return {*wanted_types(prepared.spec, prepared.protection), *places_of(candidates)}


def _check_rooms(prepared: Prepared, read: ReadDatabase, codecs: Codecs) -> None:
    """Refuse columns of which there are not enough different values for all rows, as far as public sizes tell."""
    protection = prepared.protection
    known = known_rows(protection, read.rows, public_sizes=prepared.public_sizes)
    for table in map(protection.schema.table, protection.order):
        is_known, rows = table.name in known, read.rows[table.name]
        check_room(prepared.spec, table, codecs[table.name], rows=rows, is_known=is_known)


def _source(spec: Spec, folder: Path, source: Given | None) -> Located:
    """The source, read as the spec says that its CSV files are written."""
    if source is None:
        if spec.source is None:
            raise SpecError(
                "no source: the spec names none. Give one with `--source`; in Python with `source`, also the tables "
                "in memory that it was drafted from."
            )
        source = find_source(spec.source, folder)
    return with_options(source, spec.csv)


def _with_lists(spec: Spec, located: Located, place: Place, *, epsilon: Fraction) -> Spec:
    """The spec, without hidden lists that were taken from the data if they do not pay."""
    with place.open(located) as opened:
        entities = opened.rows(spec.protection().entity)
    return with_lists_that_pay(spec, entities=entities, epsilon=epsilon)


def _compiled(spec: Spec) -> tuple[Protection, dict[str, dict[str, Codec]]]:
    protection = spec.protection()
    return protection, compile_codecs(spec, protection)


def receipt_of(
    vault: Vault, facts: Facts, spec: Spec, *, chosen: Chosen, epsilon: Fraction, delta: Fraction
) -> dict[str, Any]:
    """The receipt of what a method has spent."""
    protection = spec.protection()
    return make_receipt(
        protection=protection,
        facts=PublicFacts(
            **stated_facts(spec, protection),
            sizes={name: table.rows for name, table in facts.tables.items() if table.rows is not None},
            rows_per_entity={name: vault.cap_or_none(name) for name in facts.tables},
            declared_caps=[name for name, table in facts.tables.items() if table.cap is not None],
            parameters={"method": chosen.method.name, **chosen.stated()},
        ),
        epsilon=epsilon,
        delta=delta,
        ledger=vault.ledger,
        private_noise=vault.noise_is_private,
        software=f"privbench {__version__}",
        coins=vault.coins(2).tolist(),
    )
