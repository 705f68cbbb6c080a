"""Runs of a real loop, each with another unit, container and image: what `diagnose` of a recording
and `check` say of it.
"""

import argparse
import json
import multiprocessing
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.loops import engines, supervisor
from tests.loops.supervisor import LAST_LINE, Supervisor
from tests.loops.systemd_node import CGROUP, SystemdNode
from tests.loops.walker import walk

from necroscope.analysis.node import Node
from necroscope.analysis.origin import producer
from necroscope.lab import zombies
from necroscope.model.span import Span
from necroscope.store.query import Store

_DEAD = 20_000
NECROSCOPE = str(Path(sys.executable).with_name("necroscope"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.loops", description=__doc__)
    parser.add_argument("unpacked", type=Path, help="where the packages of scripts/test-loops are")
    parser.add_argument("--engine", choices=("podman", "docker"), default="podman")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=40, help="of each recording")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unpacked = given.unpacked.absolute()
    engine = engines.docker(unpacked) if given.engine == "docker" else engines.podman()
    node = SystemdNode(Path(tempfile.mkdtemp(prefix="necroscope-loops-")), engine)
    good = 0
    try:
        node.start()
        supervisor.prepare(node)
        for number in range(given.runs):
            dice = random.Random(given.seed * 1000 + number)
            client = engine.clients[number % len(engine.clients)]
            made = supervisor.choose(dice)
            supervisor.start(node, made, unpacked / "bin/busybox", client)
            lacking = one_run(node, made, given.seconds)
            supervisor.stop(node, made)
            good += not lacking
            said = ", ".join(lacking) or "all named"
            sys.stdout.write(f"run {number + 1} (by its {client}): {said}\n")
            sys.stdout.flush()
    finally:
        node.close()
    named = "unit, its file, container, image and why it dies by diagnose and check"
    sys.stdout.write(f"{good} of {given.runs} runs: {named}\n")
    return 0 if good == given.runs else 1


def one_run(node: SystemdNode, made: Supervisor, seconds: int) -> list[str]:
    """What was not named, and by which command."""
    parent = Path("/sys/fs/cgroup/memory") / CGROUP / made.parent
    parent.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=node.place) as scratch,
        tempfile.TemporaryDirectory(dir=node.run) as pins,  # which is memory: no walk frees it
    ):
        in_child(zombies.leak, str(parent), pins, _DEAD).join()
        walker = in_child(walk, str(parent / "memory.force_empty"), f"{scratch}/walks")
        try:
            recording = f"{scratch}/recording"
            length = f"{seconds}s"
            node.beside(NECROSCOPE, "record", "--dir", recording, "--for", length)
            said = node.beside(NECROSCOPE, "diagnose", recording, "--json")
            leads_to = origin(recording)
        finally:
            walker.kill()
            walker.join()
        checked = node.beside(NECROSCOPE, "check", "--json", "--own-log-lines", "3")
        treated = treat(node, made, f"{scratch}/treatments")
    quoted = {"its last line": LAST_LINE}
    return [
        *(f"the origin lacks {what}" for what in missing(leads_to, made)),
        *(
            f"diagnose lacks {what} ({causes(said.stdout)})"
            for what in missing(diagnosed(said.stdout), made)
        ),
        *(
            f"check lacks {what} ({unknowns(checked.stdout)})"
            for what in missing(found(checked.stdout), made, quoted)
        ),
        *treated,
    ]


def treat(node: SystemdNode, made: Supervisor, state: str) -> list[str]:
    """The unit is masked and stopped, and as it was after the undo; what is not so."""
    command = ("env", f"NECROSCOPE_TREATMENTS={state}", NECROSCOPE, "treat")
    problems = []
    for words, wanted in (
        # A script that is ended in the middle of a command may fail; then systemd says so.
        (("unit", made.unit, "--mask", "--yes"), ("inactive masked", "failed masked")),
        (("undo",), ("active static",)),
    ):
        done = node.beside(*command, *words)
        shown = node.inside(
            "systemctl", "show", "--value", "-p", "ActiveState", "-p", "UnitFileState", made.unit
        )
        if done.returncode or " ".join(shown.split()) not in wanted:
            problems.append(f"treat {words[0]}: {shown.split()} {done.stderr.strip()}")
    return problems


def origin(recording: str) -> str:
    """Where the dead cgroups come from, as `diagnose` would say of any incident that they cause: a
    machine that others use may have another incident at the same time.
    """
    store = Store.open(Path(recording))
    found = producer(Node(store, Span(*store.span())))
    return json.dumps([found.origin.as_json(), found.words]) if found is not None else ""


def diagnosed(text: str) -> str:
    """All that is said of the walks over dead cgroups."""
    verdicts = [incident["verdict"] for incident in parsed(text).get("incidents", [])]
    return json.dumps([each for each in verdicts if each["cause"] == "zombie-memcg-walk"])


def causes(text: str) -> str:
    incidents = parsed(text).get("incidents", [])
    return " ".join(each["verdict"]["cause"] for each in incidents) or "no incident"


def found(text: str) -> str:
    findings = parsed(text).get("findings", [])
    return json.dumps([each for each in findings if each["question"] == "crash-loop"])


def unknowns(text: str) -> str:
    """What could not be looked at."""
    answer = parsed(text)
    titles = [each["title"] for each in answer.get("findings", []) if each["level"] == "unknown"]
    return "; ".join([*titles, *answer.get("notices", [])]) or "it lacks nothing"


def parsed(text: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(text)
    except ValueError:
        return {}
    return answer


def missing(said: str, made: Supervisor, more: Mapping[str, str] | None = None) -> list[str]:
    # systemd may call /usr/lib by its link /lib.
    wanted = {
        "the unit": made.unit,
        "its file": made.file.removeprefix("/usr"),
        "the container": made.name,
        "the image": made.image,
        "why it dies": f"exit code {made.code}",
        **(more or {}),
    }
    return [what for what, text in wanted.items() if text not in said]


def in_child(work: Callable[..., None], *arguments: object) -> multiprocessing.Process:
    child = multiprocessing.get_context("spawn").Process(target=work, args=arguments, daemon=True)
    child.start()
    return child


if __name__ == "__main__":
    sys.exit(main())
