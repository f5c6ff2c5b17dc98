"""Fit on one screen: spec and source to codes, codes into the vault, the method on the vault, the model out.

Start reading here. Everything above the vault runs before a budget exists and may tell the publisher what is
wrong with the data; everything below it sees noisy answers alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

from privbench import __version__
from privbench.errors import SpecError
from privbench.io.open import open_source
from privbench.methods.base import Method, Progress, Settings, silent
from privbench.methods.registry import DEFAULT, METHODS
from privbench.pipeline.given import find_source, spec_of
from privbench.pipeline.model import Model, compile_codecs
from privbench.pipeline.order import generation_order
from privbench.pipeline.reading import Codecs, ReadDatabase, ids_are_public, read_database
from privbench.pipeline.spans import key_is_unique
from privbench.privacy.facts import ColumnFacts, Facts, LinkFacts, TableFacts
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import Entropy, OsEntropy
from privbench.privacy.receipt import PublicFacts, add_remove_budget, make_receipt
from privbench.privacy.vault import Vault
from privbench.schema.spec import Orphans, Sizes, Spec
from privbench.schema.unit import Link, LinkKind, Neighbours, Protection, Role

LEAST_EPSILON = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A method with its settings."""

    method: Method[Any]
    settings: Settings


def fit(
    spec: Spec | Path | str,
    *,
    source: Path | str | None = None,
    epsilon: Fraction | float | str,
    method: str | None = None,
    entropy: Entropy | None = None,
    progress: Progress = silent,
) -> Model:
    """Learn a model of the database that a spec or spec file describes, spending epsilon.

    `source` overrides the spec's, which is tried from the working directory and then from the folder of the spec
    file. The noise comes from the operating system; a test may pass its own `entropy`, and the model is then stamped
    "not private".

    Example::

        model = privbench.fit("spec.yaml", epsilon="3.2")
    """
    budget = parse_epsilon(epsilon)
    spec, folder = spec_of(spec)
    spec = with_method(spec, method)
    chosen = method_settings(spec)
    public_sizes = sizes_are_public(spec, chosen.settings)
    protection = spec.protection()
    codecs = compile_codecs(spec, protection)
    generation_order(spec, protection)
    if source is None:
        if spec.source is None:
            raise SpecError("no source: the spec names none. Give one with `--source`.")
        source = find_source(spec.source, folder)
    with open_source(source) as opened:
        read = read_database(
            opened, protection, codecs, orphans_as_null=spec.orphans.value == "null", progress=progress
        )
    facts = public_facts(spec, protection, codecs, read.rows, public_sizes=public_sizes)
    ledger = Ledger(add_remove_budget(budget, protection.neighbours))
    entropy = entropy or OsEntropy()
    vault = Vault(facts, read.private, ledger=ledger, entropy=entropy)
    return release(vault, spec, read, chosen=chosen, epsilon=budget, progress=progress)


def release(
    vault: Vault, spec: Spec, read: ReadDatabase, *, chosen: Chosen, epsilon: Fraction, progress: Progress
) -> Model:
    """Run the method on the vault and put the model together. Reads public parts of `read` alone."""
    tables = chosen.method.learn(vault, chosen.settings, progress)
    protection = spec.protection()
    receipt = make_receipt(
        protection=protection,
        facts=PublicFacts(
            domains=spec.origins(protection),
            sizes={t: f.rows for t, f in vault.facts.tables.items() if f.rows is not None},
            rows_per_entity={t: vault.cap(t) for t in vault.facts.tables},
            declared_caps=[t for t, f in vault.facts.tables.items() if f.cap is not None],
            orphans=spec.orphans.value,
            parameters={"method": chosen.method.name, **_plain(chosen.settings)},
        ),
        epsilon=epsilon,
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


def parse_epsilon(epsilon: Fraction | float | str) -> Fraction:
    """Read a privacy budget exactly; SpecError unless it is a positive number.

    >>> parse_epsilon("3.2")
    Fraction(16, 5)
    """
    if isinstance(epsilon, Fraction):
        value = epsilon
    else:
        try:
            number = Decimal(str(epsilon))
            value = Fraction(number) if number.is_finite() else Fraction(-1)
        except InvalidOperation:
            value = Fraction(-1)
    if value <= 0:
        raise SpecError(f"epsilon is {epsilon}: it must be a number above 0, such as 3.2.")
    if value < LEAST_EPSILON:
        raise SpecError(f"epsilon is {epsilon}: below {float(LEAST_EPSILON):g} nothing can be measured.")
    return value


def with_method(spec: Spec, name: str | None) -> Spec:
    """The spec with the method that the caller names, if any: settings of another method go."""
    if name is None or name == spec.method.get("name", DEFAULT):
        return spec
    return spec.model_copy(update={"method": {"name": name}})


def method_settings(spec: Spec) -> Chosen:
    """The method that the spec names, with its settings."""
    declared = dict(spec.method)
    name = str(declared.pop("name", DEFAULT))
    if name not in METHODS:
        raise SpecError(f"method {name!r}: there is no such method. Methods: {', '.join(METHODS)}.")
    return Chosen(method=METHODS[name], settings=METHODS[name].read_settings(declared))


def sizes_are_public(spec: Spec, settings: Settings) -> bool:
    """Whether the spec declares the sizes of all tables public; as printed, the paper does.

    Raises SpecError where entities may come and go: no two neighbours have the same sizes then.
    """
    public = spec.sizes is Sizes.PUBLIC or settings.as_printed
    if public and spec.neighbours is Neighbours.ADD_REMOVE:
        said = "method.as_printed" if settings.as_printed else "sizes: public"
        raise SpecError(
            f"`{said}` publishes the number of entities, which `neighbours: add-remove` protects. "
            "Set `neighbours: replace`, or take it out."
        )
    return public


def public_facts(
    spec: Spec, protection: Protection, codecs: Codecs, rows: Mapping[str, int], *, public_sizes: bool
) -> Facts:
    """What the method may know for free."""
    known = set(protection.order) if public_sizes else set()
    if protection.neighbours is Neighbours.REPLACE:
        known.add(protection.entity)
    tables = {
        name: TableFacts(
            name=name,
            columns={c: ColumnFacts(size=codec.size, ordered=codec.ordered) for c, codec in codecs[name].items()},
            rows=rows[name] if name in known else None,
            cap=spec.tables[name].rows_per_entity,
            lookup_of=protection.lookups[name][0] if name in protection.lookups else None,
        )
        for name in protection.order
    }
    private = [k for k in protection.links if protection.roles[k.table] is not Role.PUBLIC]
    links = tuple(_link_facts(protection, link, rows, known) for link in private)
    return Facts(
        entity=protection.entity,
        neighbours=protection.neighbours,
        tables=tables,
        links=links,
        public_ids=ids_are_public(protection),
        strays=spec.orphans is Orphans.NULL,
    )


def _link_facts(protection: Protection, link: Link, rows: Mapping[str, int], known: set[str]) -> LinkFacts:
    table, target = protection.schema.table(link.table), link.key.table
    slotted = link.kind is LinkKind.CATEGORY or (target == protection.entity and target in known)
    return LinkFacts(
        name=link.name,
        table=link.table,
        target=target,
        kind=link.kind,
        slots=rows[target] if slotted else None,
        nullable=any(table.column(c).nullable for c in link.key.columns),
        unique=key_is_unique(table, link),
    )


def _plain(settings: Any) -> dict[str, Any]:
    """Settings as the receipt writes them."""
    plain = {}
    for name in settings.__dataclass_fields__:
        value = getattr(settings, name)
        plain[name] = str(value) if isinstance(value, Fraction) else value
    return plain
