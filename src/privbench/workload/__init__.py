"""Workloads of queries: read and written as SQL, generated from a database, translated for publishing."""
