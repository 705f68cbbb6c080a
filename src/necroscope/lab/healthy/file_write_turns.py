"""The same bytes to a shared file in many small calls, so that others get their turn.

What it does: as `file-write-convoy`, but what is written at once there is written in pieces of a
few megabytes here. The file's lock is given back after each.

Seen in the wild: every log that several programs write.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.file_write_convoy import SharedFile


class FileWriteTurns(SharedFile):
    name = "file-write-turns"
    twin = "file-write-convoy"
    mebibytes = 8
    pieces = 225
    worst_ms = 300
