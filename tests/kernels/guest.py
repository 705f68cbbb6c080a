"""A guest: one boot of a kernel under QEMU's software emulation, with a job to do and a time to be
done in.

Three disks: the root, whose changes are thrown away; the job as a tar; room for the results as a
tar. The only network is QEMU's own, cut off from the world. The guest switches itself off when it
is done; one that is not done in time is ended.
"""

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.kernels.failure import CannotTestError
from tests.kernels.image import ROOT, Bootable

_COMMAND_LINE: Final = (
    "root=/dev/vda rw quiet loglevel=2 panic=-1 mitigations=off net.ifnames=0 systemd.getty_auto=0"
)
_RESULT_BYTES: Final = 1 << 30
_NICE: Final = ("nice", "-n", "10")
_PATCHED_TOO_LATE: Final = "Oops: int3"
FILES: Final = (
    "tests/kernels/sets",
    "tests/kernels/recorder.py",
    "tests/integration/private_view.py",
)


@dataclass(frozen=True, slots=True)
class Boot:
    """How to boot: words added to the kernel's command line, cores, and QEMU's name of a network
    device if there is one. `possible_cpus` are cores that could be plugged in; `peer` is an address
    of that network with the command that QEMU starts for each connection to it.
    """

    name: str
    command_line: str = ""
    cpus: int = 2
    memory_mb: int = 2048
    network_device: str | None = None
    possible_cpus: int | None = None
    numa_nodes: int = 1
    peer: tuple[str, str] | None = None

    @property
    def processors(self) -> str:
        return f"{self.cpus},maxcpus={self.possible_cpus}" if self.possible_cpus else f"{self.cpus}"

    @property
    def memory(self) -> list[str]:
        """QEMU's words for it, divided evenly among the nodes."""
        words = ["-m", str(self.memory_mb)]
        for node in range(self.numa_nodes if self.numa_nodes > 1 else 0):
            size_mb = self.memory_mb // self.numa_nodes
            words += ["-object", f"memory-backend-ram,id=memory{node},size={size_mb}M"]
            words += ["-numa", f"node,nodeid={node},memdev=memory{node}"]
        return words

    @property
    def network(self) -> str:
        forwarded = f",guestfwd=tcp:{self.peer[0]}-cmd:{self.peer[1]}" if self.peer else ""
        return f"user,id=net,restrict=on{forwarded}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back. `steps` is empty if nothing did; `console` is all that the guest said."""

    directory: Path
    console: str
    release: str = ""
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def is_emulators_fault(self) -> bool:
        """While the kernel patches itself, an emulator on several threads may run a breakpoint that
        is gone by then.
        """
        return _PATCHED_TOO_LATE in self.console

    def said(self, step: str) -> str:
        file = self.directory / step / "said.txt"
        return file.read_text(errors="replace") if file.exists() else ""


def run(kernel: Bootable, root: Path, boot: Boot, job: "Job", directory: Path) -> Outcome:
    """Boots, waits, and unpacks the results below `directory`."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    job.write(directory / "job.tar")
    with (directory / "results.tar").open("wb") as results:
        results.truncate(_RESULT_BYTES)
    command = _command(kernel, root, boot, directory)
    try:
        subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=job.seconds, check=True
        )
    except FileNotFoundError:
        needed = kernel.architecture
        raise CannotTestError(
            f"{needed.emulator} is missing", f"apt-get install {needed.package}"
        ) from None
    except subprocess.CalledProcessError as error:
        raise CannotTestError(
            f"QEMU failed: {error.stderr.decode(errors='replace').strip()[-500:]}"
        ) from None
    except subprocess.TimeoutExpired:
        pass
    return _unpacked(directory)


@dataclass(frozen=True, slots=True)
class Job:
    """Steps to do inside, each a name and a command; the files they need, of the tree and made
    here; `seconds` for all, from the start of QEMU.
    """

    steps: Sequence[Sequence[str]]
    wheel: Path
    seconds: int
    files: Sequence[str] = ()
    made: Sequence[Path] = ()

    def write(self, file: Path) -> None:
        with tarfile.open(file, "w") as archive:
            archive.add(ROOT / "tests/kernels/inside.py", arcname="inside.py")
            for made in (self.wheel, *self.made):
                archive.add(made, arcname=made.name)
            for name in (*FILES, *self.files):
                archive.add(ROOT / name, arcname=name, filter=_without_caches)
            answer = json.dumps(
                {"steps": [list(step) for step in self.steps], "seconds_a_step": self.seconds}
            ).encode()
            entry = tarfile.TarInfo("job.json")
            entry.size = len(answer)
            archive.addfile(entry, io.BytesIO(answer))


def _without_caches(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in entry.name else entry


def _command(kernel: Bootable, root: Path, boot: Boot, directory: Path) -> list[str]:
    disks = [f"file={root},if=virtio,format=raw,snapshot=on"]
    disks += [
        f"file={directory / name},if=virtio,format=raw" for name in ("job.tar", "results.tar")
    ]
    command = [*machine(kernel, boot), "-monitor", "none"]
    command += ["-serial", f"file:{directory / 'console.txt'}"]
    command += [word for disk in disks for word in ("-drive", disk)]
    if boot.network_device is None:
        return [*command, "-nic", "none"]
    return [
        *command,
        "-netdev",
        boot.network,
        "-device",
        f"{boot.network_device},netdev=net",
    ]


def machine(kernel: Bootable, boot: Boot) -> list[str]:
    """QEMU's words for the processors, the memory and the kernel of a boot."""
    return [
        *_NICE,
        kernel.architecture.emulator,
        *kernel.architecture.model,
        "-accel",
        "tcg,thread=multi",
        "-smp",
        boot.processors,
        *boot.memory,
        "-no-reboot",
        "-display",
        "none",
        "-kernel",
        str(kernel.image),
        "-initrd",
        str(kernel.initramfs),
        "-append",
        f"console={kernel.architecture.console} {_COMMAND_LINE} {boot.command_line}",
    ]


def _unpacked(directory: Path) -> Outcome:
    console_file = directory / "console.txt"
    console = console_file.read_text(errors="replace") if console_file.exists() else ""
    try:
        with tarfile.open(directory / "results.tar") as archive:
            archive.extractall(directory, filter="data")
        results = json.loads((directory / "results.json").read_text())
    except (tarfile.TarError, OSError):
        return Outcome(directory, console)
    finally:
        (directory / "results.tar").unlink()
    return Outcome(
        directory, console, results["release"], {step["name"]: step for step in results["steps"]}
    )
