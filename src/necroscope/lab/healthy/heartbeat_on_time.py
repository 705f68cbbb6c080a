"""A daemon is traced for moments, and its heartbeat goes out.

What it does: the same daemon and tool as in `late-heartbeat`, but the tool attaches often and lets
go at once, as a sampling profiler does.

Seen in the wild: py-spy, gdb scripts and crash handlers that look at a process and go.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.late_heartbeat import TracedDaemon


class HeartbeatOnTime(TracedDaemon):
    name = "heartbeat-on-time"
    twin = "late-heartbeat"
    held_s = (0.005, 0.02)
    pause_s = 0.3
    worst_ms = 400
