"""What was read, looked at from inside: the rows of a database that is one part."""

from privbench.fitting.reading import ReadDatabase
from privbench.privacy.part import Part


def only_part(read: ReadDatabase) -> Part:
    """The part that has all rows."""
    [part] = read.parts.map(lambda counter: counter.part)
    return part
