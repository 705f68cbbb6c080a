"""A daemon is traced for moments, and its heartbeat goes out.

What it does: the same daemon and tool as in `late-heartbeat`, but the tool attaches often and lets
go at once, as a sampling profiler does.

Seen in the wild: py-spy, gdb scripts and crash handlers that look at a process and go.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.late_heartbeat import TracedDaemon
from necroscope.lab.measured import Measured
from necroscope.lab.scenario import Truth, reached
from necroscope.lab.stage import Stage


class HeartbeatOnTime(TracedDaemon):
    name = "heartbeat-on-time"
    twin = "late-heartbeat"
    held_s = (0.005, 0.02)
    pause_s = 0.3

    def verify(self, stage: Stage, measured: Measured) -> Truth:  # noqa: ARG002
        worst_ms = measured.highest(self.log)
        return Truth({"worst_late_ms": reached("longest lateness in ms", worst_ms, at_most=400)})
