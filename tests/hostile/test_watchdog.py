"""What watches the recorder tells one that hangs from one that others keep from running."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.root]

NOBODY = 65534
WATCHDOG_S = 3
MANIFEST = Path(__file__).parents[2] / "deploy/kubernetes/base/recorder.yaml"
SPIN = ["sh", "-c", "while :; do :; done"]


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Hears what a recorder tells systemd, and expects it to speak every three seconds."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", str(WATCHDOG_S * 1_000_000))
        monkeypatch.setenv("NECROSCOPE_ALIVE_FILE", str(tmp_path / "alive"))
        yield listener


@pytest.fixture
def probe(tmp_path: Path) -> Callable[[], int]:
    """Kubernetes' liveness probe, as the manifest has it."""
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    (daemons,) = yaml.safe_load_all(MANIFEST.read_text("utf-8"))
    (container,) = daemons["spec"]["template"]["spec"]["containers"]
    command = [
        word.replace("/tmp/alive", str(tmp_path / "alive"))
        for word in container["livenessProbe"]["exec"]["command"]
    ]
    return lambda: subprocess.run(command, check=False).returncode


@contextlib.contextmanager
def crowd() -> Iterator[None]:
    """Ten programs of `nobody` per core that never sleep."""
    count = 10 * (os.cpu_count() or 1)
    spinning = [subprocess.Popen(SPIN, user=NOBODY, group=NOBODY, cwd="/") for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def heard_until_now(manager: socket.socket) -> None:
    manager.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while manager.recv(100):
            pass
    manager.settimeout(WATCHDOG_S)


def test_systemd_and_the_probe_hear_of_a_busy_recorder_and_miss_one_that_hangs(
    record, manager, probe, tmp_path
):
    manager.settimeout(60)
    recorder = record()
    assert manager.recv(100) == b"READY=1\nWATCHDOG=1"
    manager.settimeout(WATCHDOG_S)
    with crowd():
        assert [manager.recv(100) for _ in range(5)] == [b"WATCHDOG=1"] * 5, "busy, not stuck"
        assert probe() == 0
    recorder.process.send_signal(signal.SIGSTOP)
    heard_until_now(manager)
    with pytest.raises(TimeoutError):
        manager.recv(100)
    os.utime(tmp_path / "alive", (0, (tmp_path / "alive").stat().st_mtime - 300))
    assert probe() != 0
    recorder.process.send_signal(signal.SIGCONT)
    assert recorder.stop()[0] == 0
