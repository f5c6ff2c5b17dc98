"""Throw-away database servers: found on the machine, started in a folder of their own, always removed."""
