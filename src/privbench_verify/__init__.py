"""The auditor's folder: checks receipts and bundles with the standard library alone, importing nothing of PrivBench.

Copy this folder anywhere and run `python -m privbench_verify PATH`. Read `receipt.py` first; docs/receipt.md has the
format and the rules.
"""
