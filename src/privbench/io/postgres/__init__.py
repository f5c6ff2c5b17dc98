"""PostgreSQL servers: a source and a sink by URL, with types and definitions that come back as themselves."""
