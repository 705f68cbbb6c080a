"""What a hung task waits for: a line of the log says that it stands, its call trace says where."""

import re
from dataclasses import dataclass
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.event_cores import JoinedEvent
from necroscope.analysis.functions import functions
from necroscope.analysis.waits import SLEEPS

HUNG_TASK: Final = "hung_task"
# Waits for a block device or a file system, whatever is below it.
INPUT_OUTPUT: Final = functions(
    "io_schedule* blk_* bio_* submit_bio* wait_on_page_* folio_wait_* wait_on_buffer"
    " __wait_on_buffer jbd2_* ext4_* xfs_* btrfs_* f2fs_* nfs_* nfs4_* rpc_* fuse_* request_wait_*"
    " cifs_* smb2_* ceph_* gfs2_* ocfs2_* zfs_* dm_* md_* nvme_* scsi_* sync_inodes_* wb_*"
    " writeback_* freeze_super sb_start_write __sb_start_write"
)
# What a task passes through on its way to sleep, whatever it waits for.
_SLEEP: Final = functions(
    "__schedule schedule schedule_* context_switch __switch_to* __wait_for_common wait_for_*"
)
_FRAME: Final = re.compile(r"^\s*(?P<name>[\w.]+)\+0x[0-9a-f]+/0x[0-9a-f]+", re.M)
_OWNER: Final = re.compile(r"likely owned by task (?P<comm>.+):(?P<pid>\d+)\.?$", re.M)


@dataclass(frozen=True, slots=True)
class HungTask:
    """`trace` is its functions, innermost first; empty where the log has none."""

    event: JoinedEvent
    trace: tuple[str, ...]
    owner: str | None

    @property
    def comm(self) -> str:
        return str(self.event.fields.get("comm") or self.event.happening.comm or "a task")

    @property
    def is_input_output(self) -> bool:
        """The kernel says so, or its trace leads through a block device or a file system."""
        return bool(self.event.fields.get("wait")) or any(
            function in INPUT_OUTPUT for function in self.trace
        )

    @property
    def lock_of(self) -> str | None:
        """The function that wants the lock it waits for; None if it waits for no lock."""
        inner = [function for function in self.trace if function not in _SLEEP]
        outside = [function for function in inner if function not in SLEEPS]
        return outside[0] if outside and inner[0] in SLEEPS else None

    @property
    def words(self) -> str:
        """`stands, waiting for the lock of rtnetlink_rcv_msg, which ip:7 holds`."""
        if self.lock_of is None:
            where = next((function for function in self.trace if function not in _SLEEP), None)
            return f"{self.comm} is blocked{f' in {where}' if where else ''}"
        owner = f", which {self.owner} seems to hold" if self.owner else ""
        return f"{self.comm} is blocked, waiting for the lock of {self.lock_of}{owner}"


def hung_tasks(case: Case) -> list[HungTask]:
    """Those that the log names in the incident, each with its trace."""
    events = case.events_of(HUNG_TASK)
    if not events:
        return []
    texts = {
        (row["time"], row["message"]): row["lines"] or ""
        for row in case.rows("events")
        if row["kind"] == HUNG_TASK
    }
    return [_hung_task(e, texts.get((e.time_ns, e.happening.message), "")) for e in events]


def _hung_task(event: JoinedEvent, lines: str) -> HungTask:
    owner = _OWNER.search(lines)
    return HungTask(
        event,
        tuple(frame["name"] for frame in _FRAME.finditer(lines)),
        f"{owner['comm']} (pid {owner['pid']})" if owner else None,
    )
