"""A guest that can be started over and over in the middle of its work, and killed: one boot, whose
memory and disks are kept when its recorder is well under way.
"""

import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from tests.kernels import guest
from tests.kernels.failure import CannotTestError
from tests.kernels.image import Bootable
from tests.kernels.programs import run
from tests.kernels.volatile_disk import VolatileDisk

_STEP: Final = ("cut-off", "python3", "-m", "tests.kernels.sets.cut_off")
_BOOT: Final = guest.Boot("cut-off", memory_mb=768)
_DISK_BYTES: Final = 64 << 20
_UNTIL_READY_S: Final = 850
_UNTIL_RUNNING_S: Final = 120
_BEAT: Final = re.compile(r"beat (\d{19})\b")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a cycle starts from. All files lie in `directory`."""

    directory: Path
    kernel: Bootable
    disk: bytes

    @property
    def memory(self) -> Path:
        return self.directory / "memory"


class CutGuest:
    """One run under QEMU, with the recording on a disk that forgets."""

    def __init__(self, kernel: Bootable, directory: Path, disk: bytes, *more: str) -> None:
        self._sockets = [directory / "disk.socket", directory / "monitor.socket"]
        for address in self._sockets:
            address.unlink(missing_ok=True)
        self.disk = VolatileDisk(disk, self._sockets[0])
        self.beats: list[tuple[float, int]] = []
        self._is_ready = threading.Event()
        self._is_running = threading.Event()
        self._said: list[str] = []
        self._process = subprocess.Popen(
            [*_command(kernel, directory, self._sockets), *more],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self._process.stdout is not None
        self._listening = threading.Thread(target=self._listen, args=(self._process.stdout,))
        self._listening.start()

    def wait_until_ready(self) -> None:
        self._wait(self._is_ready, _UNTIL_READY_S)

    def wait_until_running(self) -> None:
        self._wait(self._is_running, _UNTIL_RUNNING_S)

    def keep(self, memory: Path) -> None:
        """Writes its memory to a file; when all is written the guest stands still."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._sockets[1]))
            monitor = connection.makefile("rw")
            _ask(monitor, "qmp_capabilities")
            _ask(monitor, "migrate", uri=f"exec:cat > {memory}")
            while (state := _ask(monitor, "query-migrate").get("status")) != "completed":
                if state in ("failed", "cancelled"):
                    raise CannotTestError("QEMU could not keep the guest's memory")
                time.sleep(0.5)

    def kill(self) -> None:
        """The power is cut."""
        self._process.kill()
        self._process.wait()
        self._listening.join()
        self.disk.close()

    def time_at_ns(self, at_s: float) -> int:
        """The guest's clock at a moment of ours: the last that it said before."""
        return max((beat for said_s, beat in self.beats if said_s <= at_s), default=0)

    def _listen(self, console: IO[bytes]) -> None:
        for line in console:
            text = line.decode(errors="replace")
            if found := _BEAT.search(text):
                self.beats.append((time.monotonic(), int(found[1])))
                self._is_running.set()
            elif text.strip() == "ready":
                self._is_ready.set()
            else:
                self._said.append(text)

    def _wait(self, event: threading.Event, seconds: float) -> None:
        if not event.wait(seconds):
            self.kill()
            raise CannotTestError(
                f"the guest was not ready within {seconds} s: {''.join(self._said)[-1500:]}"
            )


def take_snapshot(kernel: Bootable, root: Path, wheel: Path, directory: Path) -> Snapshot:
    """Boots once, until segments are sealed and dropped."""
    directory.mkdir(parents=True, exist_ok=True)
    image = directory / "empty.ext4"
    image.unlink(missing_ok=True)
    run(["mke2fs", "-q", "-t", "ext4", str(image), f"{_DISK_BYTES >> 10}k"])
    overlay = str(directory / "root.qcow2")
    run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(root.resolve()), "-F", "raw", overlay]
    )
    guest.Job([_STEP], wheel, seconds=86_400).write(directory / "job.tar")
    (directory / "results.tar").write_bytes(bytes(64 << 20))
    started = CutGuest(kernel, directory, image.read_bytes())
    started.wait_until_ready()
    started.keep(directory / "memory")
    started.kill()
    return Snapshot(directory, kernel, started.disk.content())


def resume(snapshot: Snapshot) -> CutGuest:
    """The guest goes on where it was kept; what it changes of its root is thrown away."""
    incoming = f"exec:cat {snapshot.memory}"
    resumed = CutGuest(
        snapshot.kernel, snapshot.directory, snapshot.disk, "-snapshot", "-incoming", incoming
    )
    resumed.wait_until_running()
    return resumed


def _command(kernel: Bootable, directory: Path, sockets: Sequence[Path]) -> list[str]:
    disk, monitor = sockets
    drives = [
        f"file={directory / 'root.qcow2'},if=virtio,format=qcow2",
        f"file={directory / 'job.tar'},if=virtio,format=raw",
        f"file={directory / 'results.tar'},if=virtio,format=raw",
        f"file=nbd+unix:///?socket={disk},if=virtio,format=raw,snapshot=off",
    ]
    return [
        *guest.machine(kernel, _BOOT),
        "-serial",
        "stdio",
        "-qmp",
        f"unix:{monitor},server=on,wait=off",
        *(word for drive in drives for word in ("-drive", drive)),
        "-nic",
        "none",
    ]


def _ask(monitor: IO[str], command: str, **arguments: str) -> dict[str, Any]:
    """Events that come between are passed over (QEMU's qmp-spec)."""
    monitor.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    monitor.flush()
    for line in monitor:
        answer = json.loads(line)
        if "error" in answer:
            raise CannotTestError(f"QEMU refused {command}: {answer['error']}")
        if "return" in answer:
            return dict(answer["return"])
    raise CannotTestError(f"QEMU ended at {command}")
