"""What the live view shows at one moment, as values: no drawing, no asking. None is what was not
measured.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

# In the order of the bars: first what the kernel and the hypervisor take, then what the core does
# for others, then idling.
MODES: Final = ("system", "irq", "softirq", "steal", "user", "nice", "guest", "iowait", "idle")
KERNEL_MODES: Final = MODES[:4]
BUSY_MODES: Final = MODES[:7]


class CoreOrder(Enum):
    """What cores are ordered by; SYSTEM counts irq, softirq and steal as well: time that no task
    chose to spend.
    """

    CPU = "core"
    BUSY = "busy"
    SYSTEM = "system"
    DELAY = "softirq delay"


class Position(Enum):
    """Whether the view follows the recorder."""

    LIVE = "live"
    FROZEN = "frozen"
    BACK = "looking back"


@dataclass(frozen=True, slots=True)
class Modes:
    """Shares of the time that passed, in the order of `MODES`; what they leave of 1 is time that
    was not accounted for.
    """

    shares: tuple[float, ...]

    def share_of(self, mode: str) -> float:
        return self.shares[MODES.index(mode)]

    @property
    def kernel(self) -> float:
        return sum(self.shares[: len(KERNEL_MODES)])

    @property
    def busy(self) -> float:
        return sum(self.shares[: len(BUSY_MODES)])

    @property
    def dominant(self) -> str:
        """The busy mode with most time."""
        return max(
            zip(self.shares[: len(BUSY_MODES)], BUSY_MODES, strict=True), key=lambda pair: pair[0]
        )[1]


@dataclass(frozen=True, slots=True)
class OnCore:
    """A task that was on a core, its share of the samples there, and the function most of them were
    in.
    """

    comm: str
    pid: int
    cgroup: str | None
    share: float
    function: str | None
    in_kernel: bool


@dataclass(frozen=True, slots=True)
class Delay:
    """The longest wait of a tick, of a softirq by its vector or of a task by its name; one that is
    still pending is a stall in progress.
    """

    worst_ns: int
    vector: str
    is_pending: bool


@dataclass(frozen=True, slots=True)
class ScreenCore:
    """One core. Where the softirq wait is not measured, `softirq_note` may know more: frozen, or a
    thread that starves. `task_wait` is the longest of an ordinary task for this core, from 100 ms.
    """

    cpu: int
    modes: Modes | None
    missing: str | None
    delay: Delay | None
    softirq_note: str | None
    on: tuple[OnCore, ...]
    busy_history: tuple[float | None, ...]
    task_wait: Delay | None = None


@dataclass(frozen=True, slots=True)
class ScreenEvent:
    """An event, or a gap in what was recorded."""

    time_ns: int
    kind: str
    where: str
    text: str
    is_alarming: bool


@dataclass(frozen=True, slots=True)
class Zombies:
    """Cgroups removed but not released; `controller` is memory, or unified where the kernel does
    not tell them apart.
    """

    controller: str
    dying: int | None
    tracked: int | None
    per_minute: float | None


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    in_kernel: bool
    share: float


@dataclass(frozen=True, slots=True)
class CapturedTask:
    """A task the recorder looked at when a trigger fired on this core."""

    time_ns: int
    trigger: str
    comm: str
    pid: int
    samples: int
    program: str | None
    syscall: str | None
    file: str | None


@dataclass(frozen=True, slots=True)
class ScreenThread:
    comm: str
    pid: int
    state: str
    run: float
    waited: float


@dataclass(frozen=True, slots=True)
class CoreDetail:
    """The recent past of one core; histories hold one value per second, the newest last."""

    cpu: int
    mode_history: dict[str, tuple[float | None, ...]]
    delay_history_ns: tuple[int | None, ...]
    tasks: tuple[OnCore, ...]
    functions: tuple[Function, ...]
    samples: int
    softirqs: dict[str, int | None]
    threads: tuple[ScreenThread, ...]
    captured: tuple[CapturedTask, ...]


@dataclass(frozen=True, slots=True)
class Screen:
    """Everything at `at_ns`, which is None before the first row came."""

    position: Position
    at_ns: int | None
    back_ns: int
    is_oldest: bool
    silent_ns: int
    sort: CoreOrder
    selected: int | None
    cores: tuple[ScreenCore, ...]
    all_cores: Modes | None
    worst_delay: tuple[int, Delay] | None
    zombies: Zombies | None
    pressure: dict[str, float | None]
    happenings: tuple[ScreenEvent, ...]
    detail: CoreDetail | None
    notices: tuple[str, ...]
    status: str
