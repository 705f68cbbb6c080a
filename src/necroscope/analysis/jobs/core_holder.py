"""Who had the core of a member that was starved, by the samples of that core in those seconds: the
waits of a member name who ran longest in each of them, and none of many that take turns.
"""

from collections import Counter
from dataclasses import replace
from typing import Final

import numpy as np

from necroscope.analysis.columns import read
from necroscope.analysis.jobs.member import STARVED, Member, Stop
from necroscope.analysis.recording import Recording
from necroscope.model.span import Span

# Of the core's samples: less is a busy core, and not one program's.
_LEAST_SHARE: Final = 0.6
# Fewer samples say little about shares.
_LEAST_SAMPLES: Final = 20
_COLUMNS: Final = ("cpu", "pid", "comm", "cgroup", "weight")


def with_core_holder(recording: Recording, stop: Stop, member: Member) -> Stop:
    """The stop of this member with the program that had the core for most of it, if nobody is
    known yet and there was one. What a job does to itself is not the machine's fault: programs of
    its own cgroup are not named.
    """
    if stop.how != STARVED or stop.by is not None or stop.core is None:
        return stop
    span = Span(stop.from_ns, stop.to_ns)
    rows = read(recording, "samples", span, _COLUMNS, cpus=(stop.core,))
    rows = rows.at(rows["cpu"] == stop.core)
    if len(rows) < _LEAST_SAMPLES:
        return stop
    had: Counter[tuple[str, str | None]] = Counter()
    for comm, cgroup, weight in zip(*(rows[name].tolist() for name in _COLUMNS[2:]), strict=True):
        had[comm, cgroup] += weight
    (comm, cgroup), most = had.most_common(1)[0]
    is_its = (rows["comm"] == comm) & (rows["cgroup"] == cgroup)
    pids = {int(one) for one in np.unique(rows["pid"][is_its])}
    is_own = cgroup == member.cgroup and (cgroup not in (None, "/") or comm == member.comm)
    if most < _LEAST_SHARE * had.total() or is_own or member.pid in pids or not comm:
        return stop
    only = next(iter(pids)) if len(pids) == 1 else None
    by = f"{comm}[{only}]" if only is not None else f"{comm} ({len(pids)} processes)"
    return replace(stop, by=by, by_pid=only, by_cgroup=cgroup)
