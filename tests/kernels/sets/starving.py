"""Incidents with a real network driver: an agent holds the core of its poll, again and again, each time under a recorder.

The agent is a service of the guest's systemd. Whether the transmit queue timed out is the kernel's own count; which lines the
driver wrote is in the recording.
"""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.kernels.recorder import COMMAND, Recorder
from tests.kernels.sets import wire
from tests.kernels.sets.looking import Told, check

CORE = 1
AGENT = "probe-agent"
# The watchdog looks every five seconds, rounded up to a second, for a queue that has stood still for five.
HOLD_S = 9.0
_BEFORE_S, _AFTER_S, _LONGEST_S = 8, 5, 200


def call_oneself(name: str) -> None:
    Path("/proc/self/comm").write_text(name)


def incidents(out: Path, runs: int, **facts: Any) -> None:
    """`run-N` for each, and `truth.json` beside them: how long the agent's service took, how often the queue timed out."""
    sender = wire.start_sender()
    told = [_incident(out, number) for number in range(1, runs + 1)]
    sender.kill()
    (out / "truth.json").write_text(json.dumps({**facts, "runs": told}))
    verdict = subprocess.run([*COMMAND, "diagnose", str(out / "run-1")], stdout=subprocess.PIPE, text=True, check=False).stdout
    (out / "verdict.txt").write_text(verdict)


def _incident(out: Path, number: int) -> dict[str, Any]:
    before = wire.timeouts()
    with Recorder(out / f"run-{number}", "--facts", "0s"):
        time.sleep(_BEFORE_S)
        start_s = time.monotonic()
        subprocess.run(["systemctl", "start", "--wait", AGENT], timeout=_LONGEST_S, check=False)
        took_s = time.monotonic() - start_s
        time.sleep(_AFTER_S)
    return {"agent_s": round(took_s, 1), "timeouts": wire.timeouts() - before}


def verify_resets(out: Path, runs: int, cause: str) -> str:
    """Each run was reset by the driver, and the diagnosis names core, cause and culprit. What was seen, in a line."""
    truth = json.loads((out / "truth.json").read_text())
    check(len(truth["runs"]) == runs, "every run came to its end")
    for number, run in enumerate(truth["runs"], 1):
        check(run["timeouts"] > 0, f"run {number}: the queue timed out: {truth}")
        _verify_verdict(out / f"run-{number}", cause)
    return f"{runs} of {runs}: reset by {wire.DRIVER}, core {CORE}, {cause}, {AGENT}; {_told(truth)}"


def verify_no_reset(out: Path, runs: int) -> str:
    truth = json.loads((out / "truth.json").read_text())
    check(len(truth["runs"]) == runs, "every run came to its end")
    check(not any(run["timeouts"] for run in truth["runs"]), f"softirqs run at interrupt exit, and nothing is reset: {truth}")
    return f"no reset in {runs} runs; {_told(truth)}"


def _told(truth: dict[str, Any]) -> str:
    return "the agent took " + ", ".join(f"{run['agent_s']:.0f}" for run in truth["runs"]) + " s"


def _verify_verdict(recording: Path, cause: str) -> None:
    from necroscope.analysis.engine import diagnose
    from necroscope.store.query import Store

    lines = [row for row in Told(recording).rows("events") if row["kind"] in ("nic_tx_timeout", "nic_reset")]
    check(bool(lines) and all(row["by_kernel"] for row in lines), f"{recording.name}: the lines are the kernel's own: {lines}")
    found = [one for one in diagnose(Store.open(recording)).incidents if any(e.kind.startswith("nic_") for e in one.events)]
    told = [(one.core, one.verdict.cause, one.verdict.culprit.comm if one.verdict.culprit else None) for one in found]
    check(told == [(CORE, cause, AGENT)], f"{recording.name}: one incident with core, cause and culprit: {told}")
