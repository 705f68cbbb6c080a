"""A scanner must permit each open, and does so at once.

What it does: as `slow-scanner`, but each answer takes some milliseconds.

Seen in the wild: every machine with a virus scanner that works.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.slow_scanner import ScannedDirectory


class QuickScanner(ScannedDirectory):
    name = "quick-scanner"
    twin = "slow-scanner"
    takes_s = 0.005
    worst_ms = 800
