"""Publish a private relational database as a DBMS benchmark, under database-level differential privacy.

The functions mirror the commands: `draft` a spec, `fit` a model, `generate` a bundle, `verify` it; `synth` does the
first three in one go. docs/api.md has an example of each.

    spec = privbench.draft("shop", unit="customer")
    model = privbench.fit(spec, epsilon="3.2")
    privbench.generate(model, "bundle", scale=10)
    privbench.verify("bundle").status

Names are imported when first used, so that `import privbench` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from privbench.encode.predicate import Between, In, IsNull
    from privbench.errors import PrivBenchError
    from privbench.estimation.estimate import selectivity
    from privbench.fitting.budget_record import budget
    from privbench.fitting.draft import draft
    from privbench.fitting.fit import fit
    from privbench.fitting.plan import Plan, plan
    from privbench.generation.generate import generate
    from privbench.io.base import Format
    from privbench.model.file import load_model, save_model
    from privbench.model.model import Model
    from privbench.model.verify import verify
    from privbench.schema.spec import Orphans, Sizes, Spec, read_spec, write_spec
    from privbench.schema.unit import Neighbours
    from privbench.synthesis import synth
    from privbench_verify.receipt import Verdict

_HOMES = {
    "Between": "encode.predicate",
    "Format": "io.base",
    "In": "encode.predicate",
    "IsNull": "encode.predicate",
    "Model": "model.model",
    "Neighbours": "schema.unit",
    "Orphans": "schema.spec",
    "Plan": "fitting.plan",
    "PrivBenchError": "errors",
    "Sizes": "schema.spec",
    "Spec": "schema.spec",
    "Verdict": "model.verify",
    "budget": "fitting.budget_record",
    "draft": "fitting.draft",
    "fit": "fitting.fit",
    "generate": "generation.generate",
    "load_model": "model.file",
    "plan": "fitting.plan",
    "read_spec": "schema.spec",
    "save_model": "model.file",
    "selectivity": "estimation.estimate",
    "synth": "synthesis",
    "verify": "model.verify",
    "write_spec": "schema.spec",
}

__all__ = [
    "Between",
    "Format",
    "In",
    "IsNull",
    "Model",
    "Neighbours",
    "Orphans",
    "Plan",
    "PrivBenchError",
    "Sizes",
    "Spec",
    "Verdict",
    "budget",
    "draft",
    "fit",
    "generate",
    "load_model",
    "plan",
    "read_spec",
    "save_model",
    "selectivity",
    "synth",
    "verify",
    "write_spec",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'privbench' has no attribute {name!r}")
    return getattr(import_module(f"privbench.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "import_module"})
