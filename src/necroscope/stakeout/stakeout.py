"""The loop of a stakeout: keep runs going under a recorder, look at the recording's events, write
down each outcome at once.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError, RecordingError, UsageError
from necroscope.model.units import NS_PER_S
from necroscope.stakeout.excerpts import Excerpts
from necroscope.stakeout.job import HINT, Job, memory_by_session
from necroscope.stakeout.outcome import FAILURE, CaughtEvent, EndedBy, Ending, Outcome, Run
from necroscope.stakeout.plan import Plan
from necroscope.stakeout.recorder_child import RecorderChild
from necroscope.store.query import Store

RECORDING: Final = "recording"
RUNS: Final = "runs"
CATCHES: Final = "catches"
SUMMARY: Final = "stakeout.json"
_LOOK_S: Final = 0.2
# Events reach the disk with the recorder's flush; so often the recording is asked for them.
_ASK_S: Final = 0.5
# So late after its time an event may be written: by a recorder that was not run, or of daemons that
# are asked every so often.
_LATE_NS: Final = 120 * NS_PER_S
# What happened just before the end is flushed and joined by what follows it.
_TAIL_S: Final = 6.0


@dataclass(slots=True)
class Stakeout:
    """`run` blocks until the plan is over or `stop` was called; then the recorder has sealed and no
    job is left.
    """

    directory: Path
    command: Sequence[str]
    plan: Plan
    report: Callable[[Outcome, int], None]
    outcome: Outcome = field(default_factory=Outcome)
    _jobs: list[Job] = field(default_factory=list)
    _stopping: bool = False
    _store: Store | None = None
    _looked_ns: int = 0
    _excerpts: Excerpts = field(init=False)

    def __post_init__(self) -> None:
        self._excerpts = Excerpts(self.recording, self.directory / CATCHES, self.outcome.excerpts)

    @property
    def recording(self) -> Path:
        return self.directory / RECORDING

    def stop(self) -> None:
        """Safe in a signal handler."""
        self._stopping = True

    def run(self) -> Outcome:
        self._make_directory()
        recorder = RecorderChild(self.recording, self.directory / "recorder.log")
        try:
            recorder.wait_until_it_records()
            self.outcome.ended = self._watch()
            self._end_jobs()
            self._linger()
        except BaseException:
            self._end_jobs()
            self._excerpts.abandon()
            raise
        finally:
            recorder.stop()
        self._looked_ns = 0
        self._catch()
        self._excerpts.finish()
        self._write()
        return self.outcome

    def _make_directory(self) -> None:
        if shutil.which(self.command[0]) is None:
            raise UsageError(f"{self.command[0]!r} is not a program that can be run", HINT)
        if self.directory.exists() and any(self.directory.iterdir()):
            raise RecordingError(
                f"{self.directory} is not empty",
                "a stakeout keeps one experiment: give a new directory",
            )
        (self.directory / RUNS).mkdir(parents=True)
        self.directory.chmod(0o700)

    def _watch(self) -> Ending:
        started_ns, asked_s = time.monotonic_ns(), 0.0
        while not self._stopping:
            self._collect()
            if time.monotonic() - asked_s >= _ASK_S:
                asked_s = time.monotonic()
                self._catch()
                self._excerpts.follow(time.time_ns())
                self._note_memory()
            reason = self.plan.over(self.outcome, len(self._jobs), time.monotonic_ns() - started_ns)
            if reason is not None:
                return reason
            while self.plan.may_start(self.outcome, len(self._jobs)):
                self._start()
            self.report(self.outcome, len(self._jobs))
            time.sleep(_LOOK_S)
        return Ending(EndedBy.INTERRUPT, "interrupted")

    def _start(self) -> None:
        number = len(self.outcome.runs) + len(self._jobs) + 1
        self._jobs.append(
            Job(number, self.command, self.directory / RUNS / f"{number:04}.log", time.time_ns())
        )

    def _collect(self) -> None:
        for job in list(self._jobs):
            run = job.poll(time.time_ns())
            if run is not None:
                self._keep(job, run)

    def _note_memory(self) -> None:
        if self._jobs:
            by_session = memory_by_session()
            for job in self._jobs:
                job.note_memory(by_session)

    def _end_jobs(self) -> None:
        for job in list(self._jobs):
            self._keep(job, job.stop(time.time_ns()))

    def _keep(self, job: Job, run: Run) -> None:
        self._jobs.remove(job)
        self.outcome.runs.append(run)
        self.outcome.runs.sort(key=lambda run: run.number)
        if run.is_failure and FAILURE in self.plan.until:
            self._excerpts.want(f"run-{run.number:04}", run.ended_ns)
        self._write()

    def _linger(self) -> None:
        """A failure's event may be written just after the job has died of it."""
        ends_s = time.monotonic() + _TAIL_S
        while time.monotonic() < ends_s and not self._stopping:
            self.report(self.outcome, 0)
            time.sleep(_LOOK_S)

    def _catch(self) -> None:
        """Events of the recording that are waited for and not known yet; only while runs lasted."""
        from_ns = min(
            [run.started_ns for run in self.outcome.runs] + [job.started_ns for job in self._jobs],
            default=None,
        )
        if from_ns is None:
            return
        now_ns = time.time_ns()
        window = max(from_ns, self._looked_ns - _LATE_NS), now_ns + NS_PER_S
        try:
            self._store = self._store or Store.open(self.recording)
            rows = self._store.rows("events", *window, columns=("time", "kind", "message"))
        except NecroscopeError:
            return
        self._looked_ns = now_ns
        known = {(event.time_ns, event.kind, event.message) for event in self.outcome.caught}
        for row in rows.to_pylist():
            if (
                row["kind"] in self.plan.until
                and (row["time"], row["kind"], row["message"]) not in known
            ):
                self.outcome.caught.append(
                    CaughtEvent(
                        row["time"], row["kind"], row["message"], self._runs_at(row["time"])
                    )
                )
                self._excerpts.want(row["kind"], row["time"])
        self.outcome.caught.sort(key=lambda event: event.time_ns)

    def _runs_at(self, time_ns: int) -> tuple[int, ...]:
        ended = [
            run.number for run in self.outcome.runs if run.started_ns <= time_ns <= run.ended_ns
        ]
        return tuple(
            sorted([*ended, *(job.number for job in self._jobs if job.started_ns <= time_ns)])
        )

    def _write(self) -> None:
        """After each run, whole or not at all: a night's work must outlive a power cut."""
        summary = {
            "command": list(self.command),
            "until": sorted(self.plan.until),
            **self.outcome.as_json(),
        }
        new = self.directory / f"{SUMMARY}.new"
        with new.open("w") as file:
            json.dump(summary, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self.directory / SUMMARY)
