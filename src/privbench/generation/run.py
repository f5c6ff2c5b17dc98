"""One generation: every table of a model made, in the order in which they need each other, in about constant memory.

All of a database, or one partition of it.
"""

import logging
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from privbench.errors import SpecError
from privbench.generation.draws import DrawRun
from privbench.generation.keys import KeyMaker
from privbench.generation.late import Late
from privbench.generation.partition import WHOLE, Partition, is_shared
from privbench.generation.rows import Made, PrivateRows, PublicRows
from privbench.generation.ruled import RuleCounts
from privbench.generation.sizes import Sizes, lost_rows
from privbench.io.base import Sink
from privbench.methods.method import Progress
from privbench.model.model import Model
from privbench.schema.lists import lists_of
from privbench.schema.tables import Table
from privbench.schema.unit import Role
from privbench.spn.deal import load_kernels
from privbench.threads import ahead

_logger = logging.getLogger(__name__)


class Run:
    """One generation: the sizes of the tables so far, and the keys that were made."""

    def __init__(
        self,
        model: Model,
        *,
        scale: float,
        seed: int,
        spool: Path,
        partition: Partition = WHOLE,
        threads: int | None = None,
    ) -> None:
        self._model = model
        self._seed = seed
        self._scale = scale
        self._partition = partition
        carried = spool / "carried"
        self._run = DrawRun(model, scale=scale, seed=seed, folder=carried, partition=partition, threads=threads)
        self._keep_keys, self._planned = self._run.keeps_entity_keys, self._run.planned
        self._keys = KeyMaker(model, keep_entity_keys=self._keep_keys, folder=spool, first=self._run.first)
        self._late = Late(model, self._keys, spool / "late", key_numbers=self._run.key_numbers)
        self.totals = self._run.totals
        """How many rows each table is to have, in all partitions."""
        self.written: dict[str, int] = {}
        self.rule_counts: dict[str, RuleCounts] = {}
        load_kernels(sum(self._planned[name] * len(table.network.sizes) for name, table in model.tables.items()))
        for name in model.protection.order:
            self._keys.check_room(model.protection.schema.table(name), self.totals[name], scale)

    def close(self) -> None:
        """Let go of all files that are open for what tables carry, and for rows that are kept."""
        self._run.spools.close()
        self._late.close()

    def write(self, sink: Sink, progress: Progress) -> None:
        """Make all tables and write those that are published."""
        with closing(ahead(self.batches(progress))) as batches:
            for table, batch in batches:
                if self.writes(table):
                    sink.write(table, batch)

    def writes(self, table: str) -> bool:
        """Whether rows of a table are written here: it is published and, if all partitions share it, this is the first.

        The same rows of rules are counted in one partition alone.
        """
        first = self._partition.number == 0 or not is_shared(self._model, table)
        return first and not self._model.protection.schema.table(table).list_of

    def batches(self, progress: Progress) -> Generator[tuple[str, pa.RecordBatch], None, None]:
        """Every batch of every table, with the name of its table; those that are finished in the end come last."""
        for name in self._run.order:
            self.written[name] = 0
            table = self._model.protection.schema.table(name)
            step = f"making {name}" if self._late.takes(name) else f"writing {name}"
            for made in self._table(table):
                self.written[name] += made.batch.num_rows
                self._late.keep(name, made)
                if not self._late.takes(name):
                    yield name, made.batch
                progress(step, self.written[name], max(self._planned.get(name, 0), self.written[name]))
            self._check_ahead(name)
            self._keys.finish(name)
            if name in self._model.tables:
                self._run.spools.finish(name)
        yield from self._late.batches(progress)

    def _check_ahead(self, name: str) -> None:
        """Refuse to go on if rows are missing that keys of tables made before may reference."""
        keys = [link.name for link in self._run.ahead if link.target == name]
        lost = self._planned[name] - self.written[name]
        if keys and lost > 0:
            raise SpecError(
                f"{name}: {lost:,} of its rows break a rule however they are drawn, and {', '.join(keys)} may "
                "reference them. Use another seed or scale, or fit again without the rule."
            )

    def _table(self, table: Table) -> Iterator[Made]:
        sizes = self._planned | self.written | {table.name: self._planned[table.name]}
        if self._model.protection.roles[table.name] is Role.PUBLIC:
            if self._partition.count > 1:
                sizes |= {name: self.totals[name] for name in self._run.first if not is_shared(self._model, name)}
            public = PublicRows(
                self._model, table.name, sizes=sizes, keys=self._keys, keep_entity_keys=self._keep_keys, seed=self._seed
            )
            return public.batches()
        draws = self._run.draws(table.name, sizes)
        self._keys.check_room(table, self._run.first[table.name] + draws.rows, self._scale)
        sizes[table.name] = draws.rows
        rows = PrivateRows(
            self._model,
            table.name,
            draws=draws,
            sizes=sizes,
            keys=self._keys,
            spools=self._run.spools,
            is_ahead=any(link.target == table.name for link in self._run.ahead),
        )
        if rows.rule_counts is not None and (self.writes(table.name) or table.list_of):
            self.rule_counts[table.name] = rows.rule_counts
        return rows.batches()


def lost_lines(model: Model, planned: Sizes, rows: Sizes, rules: Mapping[str, RuleCounts]) -> list[str]:
    """What to say of tables that came out smaller than planned, with the rows of the published ones."""
    left_out = {name: counts.left_out for name, counts in rules.items()}
    lines = lost_rows(model, planned, rows, left_out)
    for table in lists_of(model.protection):
        if lost := left_out.get(table.name, 0):
            lines.append(
                f"{table.name}: {lost:,} rows of this hidden list would have broken a rule and were left out, with "
                f"rows of {', '.join(table.list_of)} that belong to them."
            )
            _logger.warning("%s", lines[-1])
    return lines
