"""The same memory is filled in small pieces, so that threads that map get their turn.

What it does: as `mapping-convoy`, but the arena is filled a few megabytes at a time. The lock of
the mappings is given back after each.

Seen in the wild: every allocator that grows as it is used.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.mapping_convoy import SharedMappings
from necroscope.lab.measured import Measured
from necroscope.lab.scenario import Truth, reached
from necroscope.lab.stage import Stage


class MappingTurns(SharedMappings):
    name = "mapping-turns"
    twin = "mapping-convoy"
    piece_mebibytes = 4

    def verify(self, stage: Stage, measured: Measured) -> Truth:  # noqa: ARG002
        worst_ms = max(map(measured.highest, self.logs))
        return Truth({"worst_wait_ms": reached("longest wait in ms", worst_ms, at_most=400)})
