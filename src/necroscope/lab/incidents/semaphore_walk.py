"""An agent lists System V semaphores, and programs that died have left thousands.

What it does: a service makes a semaphore set for each worker and never removes it: they outlive
their process. An agent reads /proc/sysvipc/sem every moment, as `ipcs` does. The kernel walks the
whole table and writes a line for each set.

Seen in the wild: Apache httpd and Oracle that leave semaphores behind ("No space left on device"
from semget), MPI jobs that are killed; ipc/util.c.

What must be seen: one core in system mode in `sysvipc_sem_proc_show` below a read; semaphore sets
that grow; the service. The twin reads the same file as hard while there are few.
"""

import ctypes

from necroscope.lab.actor import Actor
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk, growing

_CREATE = 0o1000 | 0o600
# Keys of the lab's own sets, by which they are found again.
_MOST = 40_000
_libc = ctypes.CDLL(None, use_errno=True)


def leave_semaphores(key: int, first: int, more_per_s: float, directory: str) -> None:
    for number in growing(first, more_per_s, directory):
        if _libc.semget(key + number, 1, _CREATE) < 0:
            raise OSError(ctypes.get_errno(), "cannot make a semaphore")


class SemaphoreWalk(StateWalk):
    name = "semaphore-walk"
    twin = "semaphore-walk-few"
    population = ("semaphore-sets",)
    first, more_per_s = 20_000, 400
    slice_s = 0.4
    needs = ("/proc/sysvipc/sem",)

    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        key = stage.random.randrange(1 << 28, 1 << 30)
        stage.will_undo("semaphores", first_key=key, count=_MOST)
        arguments = (key, first, more_per_s, str(stage.scratch))
        return stage.start(leave_semaphores, *arguments, cpu=stage.other_cores)

    def start_walker(self, stage: Stage) -> Actor:
        return self.start_reader(stage, "/proc/sysvipc/sem")
