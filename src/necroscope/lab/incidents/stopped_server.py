"""A client waits for the answer of a server of its node that is stopped.

What it does: a server answers the questions of a client over TCP on loopback, within milliseconds.
Then it gets SIGSTOP. The kernel still takes what the client sends, so the client sleeps in recv(2)
as one that is idle does. No core is busy, and no lock is held.

Seen in the wild: a sidecar or a database that was stopped for a debugger or a snapshot and was not
let go on; a paused container that others still ask.

What must be seen: who waits, that what it sent lies unread at the server, and that the server is
stopped.
"""

import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import ClassVar

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage


def answer(place: str, stops_after_s: float) -> None:
    """A server for one client, whose port is in a file; it is stopped after this long."""
    with socket.create_server(("127.0.0.1", 0)) as own:
        new = Path(f"{place}.new")
        new.write_text(f"{own.getsockname()[1]}\n")
        new.replace(place)
        client, _ = own.accept()
        stop = threading.Timer(stops_after_s, os.kill, (os.getpid(), signal.SIGSTOP))
        stop.daemon = True
        stop.start()
        while question := client.recv(64):
            client.send(question)


def ask(place: str, questions: int) -> None:
    """Asks this often, and then sleeps until the server has something to say."""
    while not Path(place).exists():
        time.sleep(0.02)
    with socket.create_connection(("127.0.0.1", int(Path(place).read_text()))) as server:
        for _ in range(questions):
            server.send(b"a question")
            server.recv(64)
            time.sleep(0.1)
        server.recv(64)


class StoppedAnswers(Scenario):
    """A server that is stopped, and its client."""

    questions: ClassVar[int]

    def provoke(self, stage: Stage) -> None:
        place = str(stage.scratch / stage.invent("tool"))
        stops_after_s = stage.random.uniform(1.5, 3)
        self.server = stage.start(answer, place, stops_after_s, comm=stage.invent("agent"))
        client = stage.start(ask, place, self.questions, comm=stage.invent("app"))
        self.states = stage.watch(f"/proc/{self.server.pid}/stat")
        stage.hold(self.server, client)

    def stopped_s(self, stage: Stage, measured: Measurements) -> float:
        looks = [text.rpartition(")")[2].split()[:1] for _, text in measured.texts(self.states)]
        share = sum(state == ["T"] for state in looks) / max(len(looks), 1)
        return reached("seconds that it was stopped", share * stage.seconds, at_least=8)


class StoppedServer(StoppedAnswers):
    name = "stopped-server"
    cause = "slow-answer"
    twin = "idle-client"
    questions = 10_000

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        return Truth(
            {"stopped_s": self.stopped_s(stage, measured)},
            culprit=KnownCulprit(self.server.comm, self.server.pid),
            origin=KnownOrigin("process", self.server.comm),
        )
