"""Apache Spark: a session for private rows, and jobs whose errors say what to do."""
