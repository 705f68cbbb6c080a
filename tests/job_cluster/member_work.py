"""What a member of a job does in each step, and what it does to itself halfway: the same for ranks
of torch and actors of Ray.
"""

import fcntl
import os
import time
from typing import Any

_BLOCK_BYTES = 64 << 10


class MemberWork:
    """A plan: `core` to stay on, seconds of `work_s` and `pause_s` per step, `length_s` in all, a
    file to `lock` for a moment, `data` to read a block of, and a `deed`; the last three may be
    empty.
    """

    def __init__(self, plan: dict[str, Any]) -> None:
        os.sched_setaffinity(0, {int(plan["core"])})
        self._plan = plan
        self._began_s = time.monotonic()
        self._kept: list[bytes] = []
        self._data = os.open(plan["data"], os.O_RDONLY) if plan["data"] else -1
        self._read_bytes = 0

    @property
    def is_over(self) -> bool:
        return time.monotonic() - self._began_s > float(self._plan["length_s"])

    def step(self) -> None:
        until_s = time.thread_time() + float(self._plan["work_s"])
        while time.thread_time() < until_s:
            sum(range(1000))
        if self._data >= 0:
            os.pread(self._data, _BLOCK_BYTES, self._read_bytes)
            self._read_bytes += 1 << 20
        if self._plan["lock"]:
            descriptor = os.open(self._plan["lock"], os.O_RDWR | os.O_CREAT)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.close(descriptor)
        if time.monotonic() - self._began_s > float(self._plan["length_s"]) / 2:
            self._do_deed()
        time.sleep(float(self._plan["pause_s"]))

    def _do_deed(self) -> None:
        if self._plan["deed"] == "exception":
            raise ValueError("loss is not finite")
        if self._plan["deed"] == "memory":
            self._kept.append(os.urandom(16 << 20))
