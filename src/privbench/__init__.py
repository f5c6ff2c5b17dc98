"""Publish a private relational database as a DBMS benchmark, under database-level differential privacy.

The functions mirror the commands: `draft` a spec, `fit` a model, `generate` a bundle, `verify` it; `synth` does the
first three in one go. A source is a place, or a dict of DataFrames. docs/api.md has an example of each.

    spec = privbench.draft("shop", unit="customer")
    model = privbench.fit(spec, epsilon="3.2")
    privbench.generate(model, "bundle", scale=10)
    privbench.verify("bundle").status

    made = privbench.synth({"customer": df}, unit="customer", schema="schema.sql", epsilon="3.2")
    made.tables()["customer"].to_pandas()

Names are imported when first used, so that `import privbench` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from privbench.bundle import Bundle
    from privbench.encode.predicate import Between, In, IsNull
    from privbench.errors import PrivBenchError
    from privbench.estimation.estimate import selectivity
    from privbench.evaluation.compare import Comparison, compare
    from privbench.evaluation.evaluate import evaluate
    from privbench.evaluation.result import Result
    from privbench.fitting.budget_record import budget
    from privbench.fitting.draft import draft
    from privbench.fitting.plan import Plan, plan
    from privbench.generation.generate import LoadedDatabase, load_database
    from privbench.io.base import Format
    from privbench.model.file import load_model, save_model
    from privbench.model.model import Model
    from privbench.model.verify import verify
    from privbench.report.write import write_comparison, write_public_report, write_report
    from privbench.schema.spec import Orphans, Sizes, Spec, read_spec, write_spec
    from privbench.schema.unit import Neighbours
    from privbench.synthesis import fit, generate, synth
    from privbench.workload.estimate import Estimate, estimate
    from privbench.workload.generate import generate_workload
    from privbench.workload.query import Workload
    from privbench.workload.sql import read_workload, write_workload
    from privbench.workload.translate import Translation, translate_workload
    from privbench_verify.receipt import Verdict

_HOMES = {
    "Between": "encode.predicate",
    "Bundle": "bundle",
    "Comparison": "evaluation.compare",
    "Estimate": "workload.estimate",
    "Format": "io.base",
    "In": "encode.predicate",
    "IsNull": "encode.predicate",
    "LoadedDatabase": "generation.generate",
    "Model": "model.model",
    "Neighbours": "schema.unit",
    "Orphans": "schema.spec",
    "Plan": "fitting.plan",
    "PrivBenchError": "errors",
    "Result": "evaluation.result",
    "Sizes": "schema.spec",
    "Spec": "schema.spec",
    "Translation": "workload.translate",
    "Verdict": "model.verify",
    "Workload": "workload.query",
    "budget": "fitting.budget_record",
    "compare": "evaluation.compare",
    "draft": "fitting.draft",
    "estimate": "workload.estimate",
    "evaluate": "evaluation.evaluate",
    "fit": "synthesis",
    "generate": "synthesis",
    "generate_workload": "workload.generate",
    "load_database": "generation.generate",
    "load_model": "model.file",
    "plan": "fitting.plan",
    "read_spec": "schema.spec",
    "read_workload": "workload.sql",
    "save_model": "model.file",
    "selectivity": "estimation.estimate",
    "synth": "synthesis",
    "translate_workload": "workload.translate",
    "verify": "model.verify",
    "write_comparison": "report.write",
    "write_public_report": "report.write",
    "write_report": "report.write",
    "write_spec": "schema.spec",
    "write_workload": "workload.sql",
}

__all__ = [
    "Between",
    "Bundle",
    "Comparison",
    "Estimate",
    "Format",
    "In",
    "IsNull",
    "LoadedDatabase",
    "Model",
    "Neighbours",
    "Orphans",
    "Plan",
    "PrivBenchError",
    "Result",
    "Sizes",
    "Spec",
    "Translation",
    "Verdict",
    "Workload",
    "budget",
    "compare",
    "draft",
    "estimate",
    "evaluate",
    "fit",
    "generate",
    "generate_workload",
    "load_database",
    "load_model",
    "plan",
    "read_spec",
    "read_workload",
    "save_model",
    "selectivity",
    "synth",
    "translate_workload",
    "verify",
    "write_comparison",
    "write_public_report",
    "write_report",
    "write_spec",
    "write_workload",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'privbench' has no attribute {name!r}")
    return getattr(import_module(f"privbench.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "import_module"})
