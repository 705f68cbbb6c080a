"""One run: record, provoke, measure, undo, and write down the truth next to the recording."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Final

from necroscope.errors import UsageError
from necroscope.lab import catalog, safety
from necroscope.lab.actor import MARK
from necroscope.lab.label import LABEL_FILE, label_of
from necroscope.lab.ledger import ActLedger, state_directory
from necroscope.lab.machine_state import MachineState, left_behind
from necroscope.lab.measured import Measurements, Window
from necroscope.lab.meter import Meter
from necroscope.lab.names import invent
from necroscope.lab.network import read_packets
from necroscope.lab.scenario import CannotProvoke, LabError, Scenario
from necroscope.lab.stage import Stage
from necroscope.lab.undo import undo_all
from necroscope.segment.checksum import sync_directory
from necroscope.stakeout.recorder_child import RecorderChild

BASELINE_S: Final = 7.0
TAIL_S: Final = 3.0
MOST_SECONDS: Final = 300
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for; what is None is chosen by the scenario or by the seed."""

    directory: Path
    seconds: float | None = None
    seed: int | None = None
    core: int | None = None
    baseline_s: float = BASELINE_S
    force: bool = False


def run(scenario: type[Scenario], request: Request, say: Say) -> dict[str, Any]:
    """The label, also written as `label.json`; ImpactMissing if there is none to write."""
    safety.check(force=request.force)
    if missing := catalog.missing_needs(scenario):
        raise CannotProvoke(
            f"{scenario.name} needs {', '.join(missing)}", catalog.install_hint(missing)
        )
    _check(request)
    state = state_directory()
    with safety.alone(state, say), _signals_raise(), ActLedger.make(state) as ledger:
        before = MachineState.take(ledger.name)
        course = _Run(scenario(), request, ledger, say)
        try:
            label = course.label()
        finally:
            with _signals_wait():
                left = _undo(ledger, before, course.own_names, say)
    _write(request.directory / LABEL_FILE, label)
    if left:
        raise LabError(f"the run left behind: {'; '.join(left[:20])}", "run: necroscope lab clean")
    return label


def _undo(ledger: ActLedger, before: MachineState, own_names: list[str], say: Say) -> list[str]:
    """What could not be undone or is left; said here too, for the run may end by another error."""
    failures = undo_all(ledger)
    say("undone")
    found = left_behind(before, ledger.name, own_names)
    for each in failures + found.by_run:
        say(f"left behind: {each}")
    if found.by_others:
        say(
            f"others have added {len(found.by_others)} things to this machine meanwhile, such as"
            f" {found.by_others[0]}"
        )
    return failures + found.by_run


class _Run:
    """The steps in their order; `label` does them all."""

    def __init__(self, scenario: Scenario, request: Request, ledger: ActLedger, say: Say) -> None:
        self._scenario, self._request, self._ledger, self._say = scenario, request, ledger, say
        self._seed = secrets.randbelow(1 << 31) if request.seed is None else request.seed
        self._stage = self._make_stage()
        self._meter = Meter(self._stage)

    @property
    def own_names(self) -> list[str]:
        return self._stage.own_names

    def label(self) -> dict[str, Any]:
        stage = self._stage
        self._say(f"preparing {self._scenario.name} for core {stage.core}, seed {self._seed}")
        try:
            self._scenario.prepare(stage)
            baseline, incident = self._record()
            self._say("verifying the impact")
            measured = Measurements(dict(self._meter.readings), baseline, incident, self._packets())
            truth = self._scenario.verify(stage, measured)
        finally:
            self._meter.stop()
            stage.stop_actors()
        return label_of(self._scenario, truth, incident, self._seed, stage.emulated)

    def _record(self) -> tuple[Window, Window]:
        """The windows of baseline and incident; the recorder is stopped whatever happens."""
        recorder = RecorderChild(
            self._request.directory, self._stage.scratch / "recorder", {MARK: self._ledger.name}
        )
        try:
            recorder.wait_until_it_records()
            self._meter.start()
            baseline, incident = self._baseline_and_incident()
            time.sleep(TAIL_S)
            self._meter.stop()
            recorder.stop()
        except BaseException:
            recorder.kill()
            raise
        return baseline, incident

    def _baseline_and_incident(self) -> tuple[Window, Window]:
        stage = self._stage
        self._say(f"recording the baseline for {self._request.baseline_s:g} s")
        start_ns = time.time_ns()
        time.sleep(self._request.baseline_s)
        self._say(f"provoking for {stage.seconds:g} s")
        from_ns = time.time_ns()
        stage.begin()
        self._scenario.provoke(stage)
        to_ns = time.time_ns()
        stage.stop_actors(only_of_incident=True)
        return (start_ns, from_ns), (from_ns, to_ns)

    def _make_stage(self) -> Stage:
        request = self._request
        # The same seed gives other names to another scenario.
        seed = f"{self._scenario.name} {self._seed}"
        random = Random(f"place of {seed}")
        core = (
            random.choice(sorted(os.sched_getaffinity(0))) if request.core is None else request.core
        )
        scratch = Path(tempfile.gettempdir(), f"{invent(random, 'tool')}-{secrets.token_hex(4)}")
        self._ledger.write("tree", {"path": str(scratch)})
        scratch.mkdir(mode=0o700)
        seconds = request.seconds or self._scenario.seconds
        return Stage(self._ledger, core, seconds, seed, scratch, baseline_s=request.baseline_s)

    def _packets(self) -> list[tuple[int, int | None]]:
        return read_packets(*self._stage.probe_logs) if self._stage.probe_logs else []


def _check(request: Request) -> None:
    if request.directory.exists() and any(request.directory.iterdir()):
        raise UsageError(
            f"{request.directory} is not empty", "name a new directory: one recording holds one run"
        )
    if request.seconds is not None and not 1 <= request.seconds <= MOST_SECONDS:
        raise UsageError(
            f"an incident of {request.seconds:g} s is out of bounds",
            f"choose 1 to {MOST_SECONDS} seconds",
        )
    if request.core is not None and request.core not in os.sched_getaffinity(0):
        raise UsageError(f"there is no core {request.core} to use", "see: nproc")
    if shutil.disk_usage(_existing(request.directory)).free < 256 << 20:
        raise LabError(
            f"less than 256 MiB are free at {request.directory}", "choose another directory"
        )


def _existing(path: Path) -> Path:
    return next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())


def _write(path: Path, label: dict[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(label, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    sync_directory(path.parent)


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: by an exception, so that all is undone."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """While it is being undone nothing interrupts."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
