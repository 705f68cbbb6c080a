"""Names, program images and cgroups of the tasks in samples, kept from the ring's records and from /proc at first sight.

Everything here is a cache of the kernel's truth: when records were lost, or when it has grown too large, it is thrown away whole
and filled again from /proc.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.names import clean
from necroscope.perf_abi import records
from necroscope.sources.perf.address_space import AddressSpace
from necroscope.symbols.task_cgroup import parse_cgroup

_MOST_TASKS: Final = 100_000
_MOST_MAPPED_BYTES: Final = 16 << 20
_INIT: Final = 1
# A task that has left the pid table (a thread that reaped itself) runs a little longer; the kernel gives it this number.
_NO_PID: Final = -1
_COMM_START: Final = 8 + records.COMM_BODY.size
_PID: Final = records.COMM_BODY.unpack_from
_TASK: Final = records.TASK_BODY.unpack_from


class Task(NamedTuple):
    space: AddressSpace
    comm: str
    cgroup: str | None


class Processes:
    """What is known of tasks. `apply` takes the ring's task records in time order; the getters answer for the moment reached."""

    def __init__(self, proc: Path, own_roots: Mapping[bytes, bytes]) -> None:
        self._proc = str(proc)
        self._own_roots = own_roots
        self._comms: dict[int, str] = {0: "swapper", _NO_PID: "[exited]"}
        self.tasks: dict[int, Task] = {}
        self._spaces: dict[int, AddressSpace] = {}
        self._cgroups: dict[int, str | None] = {}
        self._parents: dict[int, int] = {}
        self._exited: set[tuple[int, int]] = set()
        self._mapped_bytes = 0

    def apply(self, kind: int, misc: int, record: bytes) -> None:
        if kind == records.MMAP2:
            self._map(record)
        elif kind == records.COMM:
            self._name(record, is_exec=bool(misc & records.MISC_COMM_EXEC))
        elif kind == records.FORK:
            self._fork(record)
        elif kind == records.EXIT:
            pid, _, tid, _, _ = _TASK(record, 8)
            self._exited.add((pid, tid))

    def forget_exited(self) -> None:
        """Drop what exited in this drain, after its samples were named; start afresh when the cache has outgrown its bound."""
        for pid, tid in self._exited:
            self._comms.pop(tid, None)
            self.tasks.pop(tid, None)
            if pid == tid:
                self._forget_process(pid)
        self._exited.clear()
        if len(self._comms) + len(self._spaces) + len(self._cgroups) > _MOST_TASKS or self._maps_too_much():
            self.forget_all()

    def forget_all(self) -> None:
        self.__init__(Path(self._proc), self._own_roots)  # type: ignore[misc]

    def forget_cgroups(self) -> None:
        """Tasks can be moved between cgroups without a record of it."""
        self._cgroups.clear()
        self.tasks.clear()

    def spaces(self) -> list[AddressSpace]:
        """The program images in which something was looked up."""
        return [space for space in self._spaces.values() if space.located is not None or space.stacks]

    def task(self, pid: int, tid: int) -> Task:
        """Name, program image and cgroup of a thread at once; kept until one of them may have changed."""
        task = self.tasks[tid] = Task(self.space(pid), self.comm(pid, tid), self.cgroup(pid))
        return task

    def comm(self, pid: int, tid: int) -> str:
        name = self._comms.get(tid)
        if name is None:
            name = self._comms[tid] = self._read_comm(pid, tid)
        return name

    def space(self, pid: int) -> AddressSpace:
        space = self._spaces.get(pid)
        if space is None:
            space = self._spaces[pid] = AddressSpace(is_complete=False)
        return space

    def cgroup(self, pid: int) -> str | None:
        """Its parent's if it exited before we looked, unless that is init, which moves its children before they exec."""
        path = self._cgroup_in_proc(pid)
        parent = self._parents.get(pid, _INIT)
        if path is None and parent > _INIT:
            path = self._cgroups[pid] = self._cgroup_in_proc(parent)
        return path

    def _map(self, record: bytes) -> None:
        pid, _ = _PID(record, 8)
        space = self._spaces.get(pid)
        # A process that predates us: its maps are read whole at first need, this mapping included.
        if space is not None:
            space.add(record)
            self._mapped_bytes += len(record)

    def _name(self, record: bytes, *, is_exec: bool) -> None:
        pid, tid = _PID(record, 8)
        self.tasks.pop(tid, None)
        self._comms[tid] = clean(record[_COMM_START : record.find(b"\0", _COMM_START)]) or "[empty]"
        if is_exec:
            # A thread that execs takes the number of its leader, which exited for it a moment ago.
            self._exited.discard((pid, tid))
            self._spaces[pid] = AddressSpace(is_complete=True)
        if is_exec or pid == tid:
            # Whoever names itself has just been set up, and may have been put into its place before that.
            self._cgroups.pop(pid, None)

    def _fork(self, record: bytes) -> None:
        pid, parent, tid, parent_tid, _ = _TASK(record, 8)
        self.tasks.pop(tid, None)
        self._exited.discard((pid, tid))
        comm = self._comms.get(parent_tid)
        if comm is not None:
            self._comms[tid] = comm
        else:
            self._comms.pop(tid, None)  # of whoever had this number before
        if pid != parent:
            self._forget_process(pid)
            self._parents[pid] = parent
            space = self._spaces.get(parent)
            if space is not None:
                self._spaces[pid] = space.fork()

    def _maps_too_much(self) -> bool:
        """Counts only once enough was added to be worth it: a user may map long paths in many processes."""
        if self._mapped_bytes > _MOST_MAPPED_BYTES:
            self._mapped_bytes = sum(space.size_bytes for space in self._spaces.values())
        return self._mapped_bytes > _MOST_MAPPED_BYTES

    def _forget_process(self, pid: int) -> None:
        self._spaces.pop(pid, None)
        self._cgroups.pop(pid, None)
        self._parents.pop(pid, None)

    def _read_comm(self, pid: int, tid: int) -> str:
        """Of one that exited before we looked, and whose exec would have been seen, the name it had from its parent."""
        parent = self._parents.get(pid, pid)
        for process, thread in ((pid, tid), (parent, parent)):
            try:
                raw = _read_bytes(f"{self._proc}/{process}/task/{thread}/comm")
            except OSError:
                continue
            return clean(raw.removesuffix(b"\n")) or "[empty]"
        return f":{tid}"

    def _cgroup_in_proc(self, pid: int) -> str | None:
        """Read once; None is kept too."""
        if pid not in self._cgroups:
            try:
                self._cgroups[pid] = parse_cgroup(_read_bytes(f"{self._proc}/{pid}/cgroup"), self._own_roots)
            except OSError:
                self._cgroups[pid] = None
        return self._cgroups[pid]


def _read_bytes(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 65536)
    finally:
        os.close(descriptor)
