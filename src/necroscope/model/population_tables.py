"""The table of how much state users have made in the kernel: objects by kind, and who holds most of
them.
"""

from typing import Final

from necroscope.model.table import Column, Table, Type

POPULATION_TABLES: Final = (
    Table(
        "populations",
        "how many objects of each kind the kernel holds; a row when the number has changed, and for"
        " all kinds at the start of a segment. Dentries and inodes are in `memory`, cgroups in"
        " `cgroups`",
        "/proc/slabinfo, loadavg, net/sockstat, net/protocols, net/stat, mountinfo, key-users and"
        " others that hold a number and need no walk; /proc/PID of the largest holders. Every 10 s"
        ", and every 2 s while a number moves; slab caches, lists and holders when a number or the"
        " memory of the slab caches has moved, at a trigger and at the start of a segment. A kind"
        " that cannot be read is a gap with the reason",
        (
            Column("time", Type.INT64, "when, in ns UTC"),
            Column(
                "kind",
                Type.CATEGORY,
                "for example tcp-sockets, mounts, threads, open-files; `slab:NAME` counts the"
                " objects of a slab cache (caches that the kernel has merged: all their names)",
            ),
            Column("count", Type.INT64, "objects that exist, or that this process holds"),
            Column("pid", Type.INT32, "process that holds them; null for the node", nullable=True),
            Column("comm", Type.CATEGORY, "its name", nullable=True),
            Column("cgroup", Type.CATEGORY, "its cgroup", nullable=True),
        ),
        period_s=10.0,
    ),
)
