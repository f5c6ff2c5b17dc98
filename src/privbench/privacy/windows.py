"""How near dates and times may be to others, and what that is compared with. All public.

A date is coded as a difference from another if differences lie together more closely than the dates themselves: most
of them are below so many days, and no window of RATIO times as many days holds nearly as many of the dates.
"""

NEAR = tuple(2**power for power in range(3, 14))
"""Days, from a week to about 22 years, each twice the one before."""
RATIO = 4
"""Differences that pay have a range so many times as narrow: docs/decisions/0039-finding-rules.md."""
DATES = (-25567, 47482)
"""1900-01-01 and 2100-01-01 in days since 1970; dates outside lie in no window."""
STEP = RATIO * NEAR[0] // 2
"""Days that windows of dates begin on multiples of: windows begin on multiples of half of their width."""
