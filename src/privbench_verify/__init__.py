"""The auditor's folder: checks a receipt with the standard library alone, importing nothing else of PrivBench."""
