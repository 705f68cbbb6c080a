"""The holder of a lock waits for a backend that answers.

What it does: as `silent-backend`, but the backend is never stopped: every question is answered
after some ten milliseconds.

Seen in the wild: every job that asks a server inside a lock.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.silent_backend import LockedQuestions


class QuickBackend(LockedQuestions):
    name = "quick-backend"
    twin = "silent-backend"
    stops_after_s = 0.0
    worst_ms = 700
