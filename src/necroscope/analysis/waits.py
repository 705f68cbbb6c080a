"""A wait is not a cause: who waits for a lock, what they wanted it for, and who had it.

Below a spin or rwsem slow path the function that called it says what the lock is of; whoever runs
in the same function without waiting is the holder, or one of them.
"""

from dataclasses import dataclass
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.functions import Functions, functions
from necroscope.analysis.stacks import Stacks, TaskShare

SPINS: Final = functions(
    "native_queued_spin_lock_slowpath queued_spin_lock_slowpath __pv_queued_spin_lock_slowpath"
    " queued_write_lock_slowpath queued_read_lock_slowpath _raw_spin_lock* _raw_read_lock*"
    " _raw_write_lock* osq_lock mutex_spin_on_owner rwsem_spin_on_owner rwsem_optimistic_spin"
)
SLEEPS: Final = functions(
    "rwsem_down_* down_read* down_write* __down_read* __down_write* __mutex_lock* mutex_lock*"
    " ww_mutex_lock* __ww_mutex_lock* percpu_down_* schedule_preempt_disabled"
)
WAITS: Final = SPINS | SLEEPS


@dataclass(frozen=True, slots=True)
class LockWait:
    """`share` of what ran was waiting; `wanted_by` are the functions that asked for the lock, with
    their share of the waiting.
    """

    share: float
    wanted_by: tuple[tuple[str, float], ...]
    holders: tuple[TaskShare, ...]

    @property
    def wanted_for(self) -> str | None:
        return self.wanted_by[0][0] if self.wanted_by else None


def lock_wait(case: Case, stacks: Stacks | None = None, least: float = 0.05) -> LockWait | None:
    """Of the incident's core, or of these samples; None if hardly anything waited."""
    stacks = case.samples.now if stacks is None else stacks
    share = stacks.share(WAITS)
    if share < least:
        return None
    wanted_by = tuple(stacks.callers(WAITS))
    return LockWait(
        share, wanted_by, holders(case.samples.machine, wanted_by[0][0]) if wanted_by else ()
    )


def holders(machine: Stacks, wanted_for: str) -> tuple[TaskShare, ...]:
    """Tasks of any core in the function that wants the lock, or called from it, without waiting for
    it.
    """
    inside: Functions = functions(wanted_for)
    return tuple(machine.of(inside).without(WAITS).tasks()[:3])
