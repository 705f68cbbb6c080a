"""Who a sample was of: names and program images of tasks at each moment, from the records between the samples.

Records of different cores come out of order; they wait here and are applied in time order, once no older one can follow.
"""

import struct
from bisect import bisect_left
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.interchange.capture import Lost, Names
from necroscope.interchange.perf_data.format import CGROUP, LOST_SAMPLES, MISC_FORK_EXEC
from necroscope.interchange.perf_data.header import FileHeader
from necroscope.interchange.perf_data.mappings import MAPPING_BYTES, Image
from necroscope.interchange.perf_data.samples import Samples
from necroscope.interchange.perf_data.stream import Block, Places
from necroscope.model.names import clean
from necroscope.perf_abi.event_attr import FLAG_SAMPLE_ID_ALL, SAMPLE_CPU, SAMPLE_TIME
from necroscope.perf_abi.records import (
    COMM,
    COMM_BODY,
    EXIT,
    FORK,
    KSYMBOL,
    LOST,
    LOST_BODY,
    MISC_COMM_EXEC,
    MMAP,
    MMAP2,
    TASK_BODY,
    THROTTLE,
)

KERNEL_PID: Final = 0xFFFFFFFF
_MISC_MMAP_DATA: Final = 1 << 13
_MAPPINGS: Final = (MMAP, MMAP2)
_NOTED: Final = frozenset((LOST, LOST_SAMPLES, THROTTLE, KSYMBOL, CGROUP))
_LOW: Final = np.uint64(0xFFFFFFFF)
# By type; what is not named is no record of ours, and no record is so long.
_FEWEST_BYTES: Final = np.full(32, 1 << 16, np.int64)
for _type, _bytes in (
    *((MMAP, MAPPING_BYTES), (MMAP2, 72), (COMM, 16), (FORK, 32), (EXIT, 32), (LOST, 24)),
    *((LOST_SAMPLES, 16), (KSYMBOL, 24), (CGROUP, 16), (THROTTLE, 8)),
):
    _FEWEST_BYTES[_type] = _bytes
_MOST_NOTED: Final = 1 << 16
_MOST_TASKS: Final = 1 << 20


class Assigned(NamedTuple):
    """For each sample its name and a place in `images`; the first image is that of tasks nothing is known of."""

    comm: npt.NDArray[np.int32]
    image: npt.NDArray[np.int64]
    images: list[Image]


class _Changes:
    """What tasks had at which time: values by (task, time), looked up for many samples at once."""

    def __init__(self) -> None:
        self.tasks: list[int] = []
        self.times: list[int] = []
        self.values: list[int] = []

    def add(self, task: int, time: int, value: int) -> None:
        self.tasks.append(task)
        self.times.append(time)
        self.values.append(value)

    def look_up(
        self, tasks: npt.NDArray[np.int32], times: npt.NDArray[np.int64], value_before: Callable[[int], int]
    ) -> npt.NDArray[np.int64]:
        """The value at each time; `value_before` is what a task had before the first change here."""
        distinct, codes = np.unique(tasks, return_inverse=True)
        before = np.array([value_before(task) for task in distinct.tolist()], np.int64)
        found = before[codes] if len(distinct) else np.zeros(0, np.int64)
        changed = np.array(self.tasks, np.int64).astype(np.int32)
        places = np.searchsorted(distinct, changed).clip(max=max(len(distinct) - 1, 0))
        relevant = np.flatnonzero(distinct[places] == changed) if len(distinct) else np.zeros(0, np.int64)
        if not len(relevant):
            return found
        # Changes are in time order, so their rank stands for their time, and (task, rank) is one sorted number.
        change_times = np.array(self.times, np.int64)[relevant]
        keys = places[relevant].astype(np.int64) * (len(relevant) + 1) + np.arange(1, len(relevant) + 1)
        order = np.argsort(keys)
        wanted = codes.astype(np.int64) * (len(relevant) + 1) + np.searchsorted(change_times, times, "right")
        last = np.searchsorted(keys[order], wanted, "right") - 1
        hit = (last >= 0) & (places[relevant][order][last] == codes)
        found[hit] = np.array(self.values, np.int64)[relevant][order][last[hit]]
        return found


class Tasks:
    def __init__(self, header: FileHeader, comms: Names, cgroups: Names, *, has_time: bool) -> None:
        layout = header.events[0].layout
        has_trailer = any(event.flags & FLAG_SAMPLE_ID_ALL for event in header.events)
        self._time_before_end = layout.words_before_end(SAMPLE_TIME) if has_trailer and has_time else None
        self._cpu_before_end = layout.words_before_end(SAMPLE_CPU) if has_trailer else None
        self._has_time = has_time
        self._comms = comms
        self._cgroup_names = cgroups
        self.lost: list[Lost] = []
        self.throttled = 0
        self.kernel_mappings: list[bytes] = []
        self.kernel_symbols: list[bytes] = []
        self._cgroup_of_id: dict[int, int] = {}
        self._waiting: list[tuple[int, int, int, int, int, bytes]] = []
        self._sequence = 0
        self._last_time = 0
        self._comm_of: dict[int, int] = {0: comms.number("swapper")}
        self._image_of: dict[int, Image] = {}
        self._exited: list[tuple[int, Image | None]] = []
        self._gone: list[tuple[int, Image | None]] = []
        self._images_made = 1

    def collect(self, block: Block, starts: Places, sequence: int) -> int:
        """Take in the records of a block that are no samples; returns the latest of their times."""
        headers = block.words[starts]
        kinds = (headers & _LOW).astype(np.int64)
        sizes = (headers >> np.uint64(48)).astype(np.int64)
        is_data = np.isin(kinds, _MAPPINGS) & (headers >> np.uint64(32) & np.uint64(_MISC_MMAP_DATA) != 0)
        kept = np.flatnonzero((sizes >= _FEWEST_BYTES[kinds.clip(max=len(_FEWEST_BYTES) - 1)]) & ~is_data)
        starts, kinds, sizes = starts[kept], kinds[kept], sizes[kept]
        miscs = (headers[kept] >> np.uint64(32) & np.uint64(0xFFFF)).tolist()
        times = self._times_of(block, starts, sizes) if self._has_time else (starts + sequence).tolist()
        owners = (block.words[(starts + 1).clip(max=len(block.words) - 1)] & _LOW).tolist()
        content, waiting, number = block.content, self._waiting, self._sequence
        for time, at, size, kind, misc, pid in zip(
            times, (starts * 8).tolist(), sizes.tolist(), kinds.tolist(), miscs, owners, strict=True
        ):
            record = content[at : at + size]
            if kind in _NOTED:
                self._note(kind, record, time)
            elif pid == KERNEL_PID and kind in _MAPPINGS:
                if len(self.kernel_mappings) < _MOST_NOTED:
                    self.kernel_mappings.append(record)
            else:
                number += 1
                waiting.append((time, number, kind, misc, pid, record))
        self._sequence = number
        return self._last_time

    def _times_of(self, block: Block, starts: Places, sizes: Places) -> list[int]:
        """0 for records that perf made up for what was there before; the latest one where a kernel writes no times."""
        if self._time_before_end is None:
            return [self._last_time] * len(starts)
        places = np.maximum(starts + sizes // 8 - self._time_before_end, starts)
        times: list[int] = block.words[places].view(np.int64).tolist()
        self._last_time = max([self._last_time, *times])
        return times

    def _note(self, kind: int, record: bytes, time: int) -> None:
        if kind == THROTTLE:
            self.throttled += 1
        elif kind == KSYMBOL:
            if len(self.kernel_symbols) < _MOST_NOTED:
                self.kernel_symbols.append(record)
        elif kind == CGROUP:
            (number,) = struct.unpack_from("<q", record, 8)
            self._cgroup_of_id[number] = self._cgroup_names.number(clean(record[16:].partition(b"\0")[0], 4096))
        else:
            samples = LOST_BODY.unpack_from(record, 8)[1] if kind == LOST else struct.unpack_from("<Q", record, 8)[0]
            lost = Lost(time, self._cpu_of(record), min(samples, (1 << 32) - 1))
            if len(self.lost) >= _MOST_NOTED:
                lost = lost._replace(samples=lost.samples + self.lost.pop().samples)
            self.lost.append(lost)

    def _cpu_of(self, record: bytes) -> int:
        if self._cpu_before_end is None:
            return -1
        return int(struct.unpack_from("<i", record, len(record) - 8 * self._cpu_before_end)[0])

    def assign(self, samples: Samples, until: int) -> Assigned:
        """Apply all records up to a time, and say who the samples were of; these are not later than that."""
        comm_before, image_before = dict(self._comm_of), dict(self._image_of)
        comms, images = _Changes(), _Changes()
        numbered = [Image(0, -1)]
        self._apply(until, comms, images, numbered)
        places: dict[int, int] = {}

        def place_before(pid: int) -> int:
            image = image_before.get(pid)
            if image is None:
                return 0
            if image.number not in places:
                places[image.number] = len(numbered)
                numbered.append(image)
            return places[image.number]

        def comm_of(tid: int) -> int:
            known = comm_before.get(tid)
            return self._comms.number(f":{tid}") if known is None else known

        image = images.look_up(samples.pid, samples.time, place_before)
        comm = comms.look_up(samples.tid, samples.time, comm_of).astype(np.int32)
        self._forget()
        return Assigned(comm, image, numbered)

    def cgroups_of(self, samples: Samples) -> npt.NDArray[np.int32]:
        distinct, codes = np.unique(samples.cgroup, return_inverse=True)
        numbers = np.array([self._cgroup_of_id.get(number, -1) for number in distinct.tolist()], np.int32)
        return numbers[codes]

    def _apply(self, until: int, comms: _Changes, images: _Changes, numbered: list[Image]) -> None:
        self._waiting.sort()
        count = bisect_left(self._waiting, (until + 1,))
        for time, _, kind, misc, pid, record in self._waiting[:count]:
            if kind in _MAPPINGS:
                image = self._image_of.get(pid) or self._new_image(pid, time, images, numbered)
                image.add(time, record)
            elif kind == COMM:
                _, tid = COMM_BODY.unpack_from(record, 8)
                self._comm_of[tid] = comm = self._comms.number(clean(record[16:].partition(b"\0")[0]))
                comms.add(tid, time, comm)
                if misc & MISC_COMM_EXEC:
                    self._new_image(pid, time, images, numbered)
            elif kind == FORK:
                self._fork(record, misc, time, comms, images, numbered)
            elif kind == EXIT and pid == TASK_BODY.unpack_from(record, 8)[2]:
                self._exited.append((pid, self._image_of.get(pid)))
        del self._waiting[:count]

    def _new_image(self, pid: int, time: int, images: _Changes, numbered: list[Image], parent: Image | None = None) -> Image:
        image = parent.fork(self._images_made, pid) if parent else Image(self._images_made, pid)
        self._images_made += 1
        self._image_of[pid] = image
        images.add(pid, time, len(numbered))
        numbered.append(image)
        return image

    def _fork(self, record: bytes, misc: int, time: int, comms: _Changes, images: _Changes, numbered: list[Image]) -> None:
        pid, parent_pid, tid, parent_tid, _ = TASK_BODY.unpack_from(record, 8)
        comm = self._comm_of.get(parent_tid)
        if comm is not None:
            self._comm_of[tid] = comm
            comms.add(tid, time, comm)
        if pid != parent_pid:
            parent = None if misc & MISC_FORK_EXEC else self._image_of.get(parent_pid)
            self._new_image(pid, time, images, numbered, parent)

    def _forget(self) -> None:
        """Images of processes that ended before the last time; their samples may come a little after their end."""
        for pid, image in self._gone:
            if self._image_of.get(pid) is image:  # else the number is another process's by now
                self._image_of.pop(pid, None)
        self._gone, self._exited = self._exited, []
        if len(self._comm_of) > _MOST_TASKS:
            self._comm_of.clear()
        if len(self._image_of) > _MOST_TASKS:
            self._image_of.clear()
