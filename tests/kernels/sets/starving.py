"""Incidents with a real network driver: an agent holds the core of its poll, again and again, each
time under a recorder.

The agent is a service of the guest's systemd. Whether the transmit queue timed out is the kernel's
own count; which lines the driver wrote is in the recording.
"""

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.kernels.recorder import COMMAND, Recorder
from tests.kernels.sets import wire
from tests.kernels.sets.looking import GuestRecording, check, say

CORE = 1
AGENT = "probe-agent"
# The watchdog looks every five seconds, rounded up to a second, for a queue that has stood still
# for five; it takes a while until the queue is full, and soft lockups are reported after twenty.
HOLD_S = 11.0
_QUIET_FLUSHES, _AFTER_FLUSHES, _LONGEST_S = 3, 2, 300


def call_oneself(name: str) -> None:
    Path("/proc/self/comm").write_text(name)


def incidents(out: Path, runs: int, **facts: Any) -> None:
    """All in one recording, each after a quiet while; `truth.json` has when each was, and how often
    the queue timed out.
    """
    sender = wire.start_sender()
    with Recorder(out / "recording") as recorder:
        found = [_incident(recorder) for _ in range(runs)]
    sender.kill()
    (out / "truth.json").write_text(json.dumps({**facts, "runs": found}))
    verdict = subprocess.run(
        [*COMMAND, "diagnose", str(out / "recording")],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    ).stdout
    (out / "verdict.txt").write_text(verdict)


def _incident(recorder: Recorder) -> dict[str, Any]:
    before, from_ns = wire.timeouts(), time.time_ns()
    recorder.wait_for_flushes(_QUIET_FLUSHES)
    start_s = time.monotonic()
    subprocess.run(["systemctl", "start", "--wait", AGENT], timeout=_LONGEST_S, check=False)
    took_s = time.monotonic() - start_s
    recorder.wait_for_flushes(_AFTER_FLUSHES)
    found = {
        "from": from_ns,
        "to": time.time_ns(),
        "agent_s": round(took_s, 1),
        "timeouts": wire.timeouts() - before,
    }
    say(f"the agent took {took_s:.1f} s, and the queue timed out {found['timeouts']} times")
    return found


def verify_resets(out: Path, runs: int, cause: str) -> str:
    """Each run was reset by the driver, and the diagnosis names core, cause and culprit. What was
    seen, in a line.
    """
    truth = json.loads((out / "truth.json").read_text())
    check(len(truth["runs"]) == runs, "every run came to its end")
    right = [
        run["timeouts"] > 0 and _verdicts(out / "recording", run) == [(CORE, cause, AGENT)]
        for run in truth["runs"]
    ]
    seen = [(run["timeouts"], _verdicts(out / "recording", run)) for run in truth["runs"]]
    check(all(right), f"{sum(right)} of {runs} right; time-outs of the queue and verdicts: {seen}")
    lines = [
        row
        for row in GuestRecording(out / "recording").rows("events")
        if row["kind"] in ("nic_tx_timeout", "nic_reset")
    ]
    check(
        bool(lines) and all(row["by_kernel"] for row in lines),
        f"the lines are the kernel's own: {lines}",
    )
    return f"{runs} of {runs}: reset by {wire.DRIVER}, core {CORE}, {cause}, {AGENT}; {_describe(truth)}"


def verify_no_reset(out: Path, runs: int) -> str:
    truth = json.loads((out / "truth.json").read_text())
    check(len(truth["runs"]) == runs, "every run came to its end")
    check(
        not any(run["timeouts"] for run in truth["runs"]),
        f"softirqs run at interrupt exit, and nothing is reset: {truth}",
    )
    named = [
        one.verdict.cause for run in truth["runs"] for one in _incidents(out / "recording", run)
    ]
    check("irq-core-collision" not in named, f"no poll waited, and none is accused: {named}")
    return f"no reset in {runs} runs; {_describe(truth)}"


def _incidents(recording: Path, run: dict[str, Any]) -> Sequence[Any]:
    from necroscope.analysis.engine import diagnose
    from necroscope.store.query import Store

    return diagnose(Store.open(recording), span=(run["from"], run["to"])).incidents


def _verdicts(recording: Path, run: dict[str, Any]) -> list[tuple[int | None, str, str | None]]:
    """Core, cause and culprit of each incident of that run in which a network device is spoken
    of.
    """
    found = [
        one
        for one in _incidents(recording, run)
        if any(event.kind.startswith("nic_") for event in one.events)
    ]
    return [
        (one.core, one.verdict.cause, one.verdict.culprit.comm if one.verdict.culprit else None)
        for one in found
    ]


def _describe(truth: dict[str, Any]) -> str:
    return "the agent took " + ", ".join(f"{run['agent_s']:.0f}" for run in truth["runs"]) + " s"
