"""One run of a method, measured.

    python -m privbench.evaluation.measured_run SPEC SOURCE METHOD EPSILON DELTA OUT SEED


Prints its cost as JSON. Loading the package is not part of the CPU time, but of the memory.
"""

import json
import resource
import sys
import time
from fractions import Fraction
from pathlib import Path

from privbench.errors import PrivBenchError
from privbench.fitting.fit import fit
from privbench.generation.generate import generate


def main(spec: str, source: str, method: str, epsilon: str, delta: str, out: str, seed: str) -> None:
    """Fit, generate, and print what that took."""
    start = time.process_time()
    try:
        model = fit(spec, source=source, epsilon=Fraction(epsilon), delta=Fraction(delta), method=method)
        generate(model, out, seed=int(seed))
    except PrivBenchError as error:
        sys.exit(" ".join(str(error).split()))
    print(json.dumps({"cpu_seconds": time.process_time() - start, "peak_bytes": _peak_bytes()}))


def _peak_bytes() -> int:
    """The most memory this process had. On Linux getrusage would count the parent's before this program began."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(text for text in status.read_text("ascii").splitlines() if text.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main(*sys.argv[1:])
