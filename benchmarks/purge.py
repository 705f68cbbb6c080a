"""What a purge of dead memory cgroups finds and frees, how long it holds a core, and what a kill in
the middle leaves: 20,000 real dead cgroups of three kinds of pins, then 100 kills.

    .venv/bin/python benchmarks/purge.py [--dead N] [--kills N]

Needs root and cgroup v1 with the memory controller. Everything it makes is removed.
"""

import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from dead_cgroups import DeadCgroups
from necroscope.errors import TreatmentFailed
from necroscope.treat import treatment
from necroscope.treat.act_ledger import APPLIED, TAKEN_BACK, ledgers, only_one
from necroscope.treat.dead_pages import dead_count, find_pins
from necroscope.treat.kernel_pages import KernelPages
from necroscope.treat.mapped_pages import PAGE_BYTES
from necroscope.treat.purge import PurgeStep
from necroscope.treat.treatment import Treatment
from necroscope.treat.undo_kinds import UNDO_KINDS

ROOT = Path("/")
_NEIGHBOUR_BYTES = 256 << 20
# What is freed already is dropped, copied and filled again: each has as much to do as the first.
_KILLS_PER_PLAN = 10
_OUTCOMES = (APPLIED, TAKEN_BACK)


def plan(made: DeadCgroups, state: Path) -> PurgeStep:
    pages = KernelPages()
    try:
        folders = [made.disk, made.memory]
        pins = find_pins(ROOT, pages, folders, below=made.below)
    finally:
        pages.close()
    return PurgeStep(pins, ROOT, state / "saved-pages")


def purge_all(dead: int, state: Path) -> dict[str, object]:
    made = DeadCgroups("necroscope-purge")
    try:
        before = dead_count(ROOT) or 0
        of_disk, of_tmpfs = dead * 2 // 5, dead * 7 // 20
        made.add(of_disk, of_tmpfs, dead - of_disk - of_tmpfs)
        made.add_neighbour(_NEIGHBOUR_BYTES)
        cached, content = made.cached_pages(), made.digest()
        began = time.monotonic()
        step = plan(made, state)
        planned_s = time.monotonic() - began
        delay = LatenessMeter()
        applied = Treatment("benchmark", (step,))
        began = time.monotonic()
        treatment.apply(applied, ROOT, state, UNDO_KINDS, lambda _text: None)
        purged_s = time.monotonic() - began
        is_kept = made.digest() == content
        left = _pages_of_the_dead(made)
        return {
            "dead": dead,
            "attributed_percent": round(100 * step.pins.explained / dead, 2),
            "freed_percent": round(100 * (dead - left) / dead, 2),
            "dead_on_the_node": [before, step.pins.dead, step.dead_after],
            "longest_hold_ms": round(step.bites.longest_ns / 1e6, 3),
            "latest_wakeup_of_others_ms": round(delay.end() * 1e3, 1),
            "cache_of_others_percent": round(100 * made.cached_pages() / max(cached, 1), 2),
            "content_is_kept": is_kept,
            "plan_s": round(planned_s, 1),
            "purge_s": round(purged_s, 1),
            "left": dict(step.left),
        }
    finally:
        made.close()


def _pages_of_the_dead(made: DeadCgroups) -> int:
    """Charged to the live parent or its dead children, without its own: each dead one had one."""
    pages = KernelPages()
    try:
        charged = sum(pages.count().get(made.pods.stat().st_ino, {}).values())
    finally:
        pages.close()
    stat = dict(line.split() for line in (made.pods / "memory.stat").read_text().splitlines())
    own = int(stat["cache"]) + int(stat["rss"])
    return max(0, charged - own // PAGE_BYTES)


class LatenessMeter:
    """A process with an ordinary priority that wants to run every millisecond, on any core: the
    longest that it was late.
    """

    def __init__(self) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        self._child = multiprocessing.get_context("fork").Process(
            target=_measure, args=(theirs,), daemon=True
        )
        self._child.start()

    def end(self) -> float:
        self._ours.send(None)
        latest: float = self._ours.recv()
        self._child.join()
        return latest


def _measure(asked: multiprocessing.connection.Connection) -> None:
    latest = 0.0
    while not asked.poll():
        began = time.monotonic()
        time.sleep(0.001)
        latest = max(latest, time.monotonic() - began - 0.001)
    asked.send(latest)


def kill_many(kills: int, state: Path, dice: random.Random) -> dict[str, object]:
    made = DeadCgroups("necroscope-kills")
    half_done: list[str] = []
    midway = 0
    longest_s = 1.0
    try:
        for number in range(kills):
            if number % _KILLS_PER_PLAN == 0:
                made.add(60, 60, 100)
                content = made.digest()
                pins = plan(made, state).pins
            step = PurgeStep(pins, ROOT, state / "saved-pages")
            began = time.monotonic()
            outcome = _killed(step, state, dice.uniform(0, longest_s))
            midway += outcome == TAKEN_BACK
            if outcome == APPLIED:
                longest_s = max(0.1, time.monotonic() - began)
            half_done += _half_done(made, state, content)
        return {"kills": kills, "in_the_middle": midway, "half_done": half_done}
    finally:
        made.close()


def _killed(step: PurgeStep, state: Path, after_s: float) -> str | None:
    """A purge in a process that is killed after a while; then its guardian's work is waited for."""
    child = os.fork()
    if not child:
        treatment.apply(Treatment("killed", (step,)), ROOT, state, UNDO_KINDS, lambda _text: None)
        os._exit(0)
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while True:
        try:
            with only_one(state):
                break
        except TreatmentFailed:
            time.sleep(0.01)
    found = ledgers(state)
    return found[0].record().outcome if found else TAKEN_BACK


def _half_done(made: DeadCgroups, state: Path, content: str) -> list[str]:
    found = [] if made.digest() == content else ["content changed"]
    found += [f"copy left: {file.name}" for file in made.memory.glob(".necroscope-*")]
    found += [file.name for file in state.glob("saved-pages*")]
    outcomes = [ledger.record().outcome for ledger in ledgers(state)]
    return [*found, *("no outcome" for outcome in outcomes if outcome not in _OUTCOMES)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dead", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as directory:
        if given.dead:
            sys.stdout.write(json.dumps(purge_all(given.dead, Path(directory, "state"))) + "\n")
        if given.kills:
            state = Path(directory, "kills")
            killed = kill_many(given.kills, state, random.Random(given.seed))
            sys.stdout.write(json.dumps(killed) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
