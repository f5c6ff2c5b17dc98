"""How fast queries run: one workload on copies of several databases in one system, beside the noise of such figures."""
