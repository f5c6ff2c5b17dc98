"""All commands in one group. Each reads its flags, calls the function of the same name, and prints the result.

Results go to stdout; progress, warnings and errors to stderr. What a command needs is imported when it runs, so
that `--help` is quick. The commands themselves are in `fit`, `model`, `demo`, `workload`, `evaluate`, `compare` and
`budget`.
"""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

import logging

import click

import privbench
from privbench.cli.budget import budget
from privbench.cli.compare import compare
from privbench.cli.demo import demo
from privbench.cli.evaluate import evaluate
from privbench.cli.fit import draft, fit, synth
from privbench.cli.model import generate, show, verify
from privbench.cli.output import warn
from privbench.cli.quick_start import without_pandas
from privbench.cli.workload import estimate, workload
from privbench.io.staging import remove_leftovers


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(privbench.__version__, prog_name="privbench")
def cli() -> None:
    """Publish a private relational database as a DBMS benchmark, under database-level differential privacy.

    \b
    Try:      privbench demo
    Your own: privbench synth FOLDER --unit customer --epsilon 3.2 -o bundle
    """
    remove_leftovers()


for _command in (demo, draft, fit, generate, synth, show, verify, workload, estimate, evaluate, compare, budget):
    cli.add_command(_command)
for _command in (demo, draft, fit, generate, synth, *workload.commands.values(), estimate, evaluate, compare):
    if _command.callback is not None:
        _command.callback = without_pandas(_command.callback)


class _Warnings(logging.Handler):
    """Prints what the library warns of, such as keys to missing rows."""

    def emit(self, record: logging.LogRecord) -> None:
        warn([record.getMessage()])


def run() -> None:
    """Run the command that the arguments name; all errors are the caller's."""
    logger, warnings = logging.getLogger("privbench"), _Warnings()
    logger.addHandler(warnings)
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Abort as stopped:
        raise stopped.__cause__ or KeyboardInterrupt from None
    finally:
        logger.removeHandler(warnings)
