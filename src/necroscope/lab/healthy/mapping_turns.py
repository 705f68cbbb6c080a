"""The same memory is filled in small pieces, so that threads that map get their turn.

What it does: as `mapping-convoy`, but the arena is filled a few megabytes at a time. The lock of
the mappings is given back after each.

Seen in the wild: every allocator that grows as it is used.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.mapping_convoy import SharedMappings


class MappingTurns(SharedMappings):
    name = "mapping-turns"
    twin = "mapping-convoy"
    piece_mebibytes = 4
    worst_ms = 400
