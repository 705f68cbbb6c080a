"""What a stakeout knows: each run of the job and how it ended, each event that was waited for, the
share that went well.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from necroscope.analysis.interval import wilson
from necroscope.model.units import format_moment

FAILURE: Final = "failure"


class EndedBy(StrEnum):
    """What ended a stakeout."""

    EVENT = "event"
    FAILURE = "failure"
    TIME = "time"
    RUNS = "runs"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True)
class Ending:
    """`words` say it to people: `run 2 failed`."""

    by: EndedBy
    words: str


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the job. One that was `stopped` by the stakeout neither succeeded nor failed.

    `cpu_s` is that of the job and of those descendants that it waited for, as the kernel adds them
    up; `peak_rss_bytes` is the most that all processes of its session held at a moment we looked,
    None if it ended before.
    """

    number: int
    started_ns: int
    ended_ns: int
    exit_code: int
    cpu_s: float
    peak_rss_bytes: int | None
    output: str
    stopped: bool = False

    @property
    def is_failure(self) -> bool:
        """`exit_code` is minus the signal's number if one ended it, as in `subprocess`."""
        return self.exit_code != 0 and not self.stopped

    def as_json(self) -> dict[str, Any]:
        ended = "stopped" if self.stopped else "failed" if self.is_failure else "succeeded"
        return {
            "run": self.number,
            "from": format_moment(self.started_ns),
            "to": format_moment(self.ended_ns),
            "outcome": ended,
            "exit_code": self.exit_code,
            "cpu_s": round(self.cpu_s, 3),
            "peak_rss_bytes": self.peak_rss_bytes,
            "output": self.output,
        }


@dataclass(frozen=True, slots=True)
class CaughtEvent:
    """An event that was waited for; `runs` are the numbers of those under way at that moment."""

    time_ns: int
    kind: str
    message: str
    runs: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "time": format_moment(self.time_ns),
            "kind": self.kind,
            "message": self.message,
            "runs": list(self.runs),
        }


@dataclass(slots=True)
class Outcome:
    """Grows while the stakeout lasts; `ended` is None until then. `excerpts` are the recordings
    kept of what was caught.
    """

    runs: list[Run] = field(default_factory=list)
    caught: list[CaughtEvent] = field(default_factory=list)
    ended: Ending | None = None
    excerpts: list[str] = field(default_factory=list)

    @property
    def successes(self) -> int:
        return sum(not run.stopped and not run.is_failure for run in self.runs)

    @property
    def finished(self) -> int:
        return sum(not run.stopped for run in self.runs)

    @property
    def failures(self) -> int:
        return self.finished - self.successes

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.successes, self.finished)

    def as_json(self) -> dict[str, Any]:
        share = self.successes / self.finished if self.finished else None
        return {
            "ended": self.ended.words if self.ended else "",
            "ended_by": self.ended.by if self.ended else None,
            "runs": [run.as_json() for run in self.runs],
            "caught": [event.as_json() for event in self.caught],
            "excerpts": self.excerpts,
            "success_rate": {
                "successes": self.successes,
                "runs": self.finished,
                "share": share,
                "interval": self.interval,
            },
        }
