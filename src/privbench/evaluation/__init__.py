"""How close a synthetic database is to the real one: for the publisher only, nothing here is private."""
