"""Jobs that share a lock on a file, as locks are meant.

What it does: the same jobs as in `file-lock-convoy`, but each has the lock for some ten
milliseconds only.

Seen in the wild: every mail spool, package cache and log that several processes write.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.file_lock_convoy import LockedFile


class FileLockTurns(LockedFile):
    name = "file-lock-turns"
    twin = "file-lock-convoy"
    seconds = 15
    held_s = (0.02, 0.06)
    worst_ms = 700
