"""A pattern: what one kind of log line looks like, what it means, and how it joins with its
neighbours.

Named groups of the regex are what is caught: `cpu`, `device`, `queue`, `pid` and `comm` become
columns of `events`, every other one a field. Names end in their unit. `name__2` is a second
spelling of `name`; `name_hex` stays text.
"""

import re
from enum import Enum
from typing import Final, NamedTuple

COLUMNS: Final = ("cpu", "device", "queue", "pid", "comm")
# TASK_COMM_LEN is 16 with its zero byte. `clean` writes a byte that cannot be shown as four.
COMM: Final = r"(?>\\x[0-9a-f]{2}|.){1,15}"


class Role(Enum):
    """What a line does to the sequence of its family."""

    OPENS = "opens a sequence, or joins the open one"
    JOINS = "is part of an open sequence, and nothing alone"
    ENDS = "is the last line of a sequence, or an event alone"


class Family(NamedTuple):
    """Lines that tell one story. A story is over `window_s` after its last line; its key tells
    stories at the same time apart.
    """

    name: str
    window_s: float
    key: tuple[str, ...] = ()


NIC: Final = Family("nic", 10, ("bus", "device"))
LOCKUP: Final = Family("lockup", 2, ("cpu",))
# The grace-period kthread's own trouble is printed up to ten seconds after the stall.
RCU: Final = Family("rcu", 15)
HUNG_TASK: Final = Family("hung_task", 2, ("pid",))
# The dump of all tasks between the first and the last line takes its time on a slow console.
OOM: Final = Family("oom", 60)
OOPS: Final = Family("oops", 5)
# Each call that waits for the server prints its own line.
NFS: Final = Family("nfs", 10, ("server",))


class Pattern(NamedTuple):
    """`keywords`: every line that matches has one of them as a whole word, or begins with `prefix`:
    the cheap first test.

    A sequence takes its kind from its weightiest line. `alarm`: the recorder must know at once.
    `traced`: a register dump, call trace or table follows in lines that name no process.
    `multiline`: the driver prints several lines in one record, and none of them holds a name that a
    user chose.
    """

    id: str
    kind: str
    expression: str
    keywords: tuple[str, ...] = ()
    prefix: str = ""
    family: Family | None = None
    role: Role = Role.OPENS
    weight: int = 0
    alarm: bool = False
    traced: bool = False
    multiline: bool = False

    @property
    def regex(self) -> re.Pattern[str]:
        """Compiled when the first line comes that may match, and kept by `re`: to compile all of
        them took 18 ms of each start, and few nodes ever print one of these lines.
        """
        return re.compile(self.expression)


def pattern(
    pattern_id: str,
    kind: str,
    keywords: str,
    *regex: str,
    prefix: str = "",
    family: Family | None = None,
    role: Role = Role.OPENS,
    weight: int = 0,
    alarm: bool = False,
    traced: bool = False,
    multiline: bool = False,
) -> Pattern:
    """A row of a pattern table; the pieces of the regex are joined. It must match from the start of
    the record.

    Users choose the 15 bytes of a comm that some records begin with, and file names further on. So
    a regex demands more than 15 bytes of the kernel's own words in one piece, or the end of the
    record, before it believes what it caught.
    """
    return Pattern(
        pattern_id,
        kind,
        "(?a)" + "".join(regex),
        tuple(keywords.split()),
        prefix,
        family,
        role,
        weight,
        alarm,
        traced,
        multiline,
    )
