"""A scanner that must permit each open answers late, and every program that opens a file stands.

What it does: a scanner listens to a directory by fanotify(7) with permission events: the kernel
asks it before any process may open a file there. It takes seconds for an answer, as if it asked a
server for each file. Programs that open such a file stand in the kernel although nothing is busy.

Seen in the wild: virus scanners and fapolicyd that hold up every open on the machine; FUSE servers
and automounters do the same to what they serve (fs/notify/fanotify/fanotify.c).

What must be seen: who stands in `fanotify_handle_event`, and that one process ends all these waits.
"""

import ctypes
import os
import struct
import time
from pathlib import Path
from typing import ClassVar

from necroscope.lab.noted_waits import NotedWaits, WaitScenario
from necroscope.lab.scenario import CannotProvoke, KnownCulprit
from necroscope.lab.stage import Stage

# include/uapi/linux/fanotify.h
_CLASS_CONTENT, _MARK_ADD, _ALLOW = 0x4, 0x1, 0x1
_OPEN_PERMISSION, _ON_CHILD = 0x10000, 0x8000000
_EVENT = struct.Struct("<IBBHQii")
_RESPONSE = struct.Struct("<iI")


def scan(directory: str, takes_s: float, ready: str) -> None:
    """Permits what is opened there, all that asked meanwhile after one look at it."""
    libc = ctypes.CDLL(None, use_errno=True)
    listener = libc.fanotify_init(_CLASS_CONTENT, os.O_RDONLY)
    mask = ctypes.c_uint64(_OPEN_PERMISSION | _ON_CHILD)
    if listener < 0 or libc.fanotify_mark(listener, _MARK_ADD, mask, -100, directory.encode()):
        raise OSError(ctypes.get_errno(), "fanotify")
    Path(ready).touch()
    while True:
        events = os.read(listener, 8192)
        time.sleep(takes_s)
        for _, _, _, _, _, file, _ in _EVENT.iter_unpack(events):
            os.write(listener, _RESPONSE.pack(file, _ALLOW))
            os.close(file)


def open_again(path: str, pause_s: float, log: str) -> None:
    waits = NotedWaits(log)
    while True:
        began = time.monotonic()
        os.close(os.open(path, os.O_RDONLY))
        waits.note(time.monotonic() - began)
        time.sleep(pause_s)


class ScannedDirectory(WaitScenario):
    """Programs that open files, and who must permit it; how long an answer takes."""

    takes_s: ClassVar[float]
    seconds: ClassVar[int] = 16

    def prepare(self, stage: Stage) -> None:
        self.directory = stage.scratch / stage.invent("app")
        self.directory.mkdir()
        self.logs = [stage.watch(stage.scratch / f"waits-{number}") for number in range(3)]
        for number in range(len(self.logs)):
            (self.directory / str(number)).write_text("content\n")

    def provoke(self, stage: Stage) -> None:
        ready = stage.scratch / "ready"
        takes_s = self.takes_s * stage.random.uniform(0.9, 1.1)
        scanner = stage.start(
            scan, str(self.directory), takes_s, str(ready), comm=stage.invent("agent")
        )
        deadline = time.monotonic() + 5
        while not ready.exists():
            if scanner.exit_code is not None or time.monotonic() > deadline:
                raise CannotProvoke(f"the kernel gives no permission events: {stage.output()}")
            time.sleep(0.05)
        comm = stage.invent("app")
        programs = [
            stage.start(open_again, str(self.directory / str(number)), 0.05, log, comm=comm)
            for number, log in enumerate(self.logs)
        ]
        self.culprit = KnownCulprit(scanner.comm, scanner.pid)
        stage.hold(scanner, *programs)


class SlowScanner(ScannedDirectory):
    name = "slow-scanner"
    cause = "slow-answer"
    twin = "quick-scanner"
    takes_s = 2.0
    worst_ms = 1200
