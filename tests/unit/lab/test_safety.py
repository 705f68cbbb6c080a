"""Where the lab refuses to run."""

import os
import struct
import threading
from pathlib import Path

import pytest

from necroscope.errors import PermissionMissing
from necroscope.lab import safety
from necroscope.lab.scenario import LabError


@pytest.fixture(autouse=True)
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def utmp(*users: str) -> bytes:
    """As glibc writes it: 384 bytes a record; type 7 is a user's process, 8 one that has ended."""
    records = [(7, user) for user in users] + [(8, "gone"), (2, "reboot")]
    return b"".join(
        struct.pack("<hxxi32s4s32s308x", kind, 1, b"tty1", b"1", user.encode())
        for kind, user in records
    )


def test_a_quiet_machine_is_fine(tmp_path: Path) -> None:
    safety.check(tmp_path)


def test_it_needs_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PermissionMissing, match="needs root") as caught:
        safety.check(tmp_path, force=True)
    assert "sudo" in caught.value.hint


def test_many_users_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/utmp").write_bytes(utmp("ada", "ada", "bob", "eve"))
    safety.check(tmp_path)
    (tmp_path / "run/utmp").write_bytes(utmp("ada", "bob", "eve", "joe"))
    with pytest.raises(LabError, match="4 users are logged in: ada, bob, eve, joe"):
        safety.check(tmp_path)
    safety.check(tmp_path, force=True)


def test_a_kubelet_that_runs_makes_a_node(tmp_path: Path) -> None:
    (tmp_path / "proc/17").mkdir(parents=True)
    (tmp_path / "proc/17/comm").write_text("kubelet\n")
    with pytest.raises(LabError, match="kubelet runs"):
        safety.check(tmp_path)


def test_a_kubelet_that_is_set_up_makes_a_node(tmp_path: Path) -> None:
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    (tmp_path / "var/lib/kubelet/config.yaml").touch()
    with pytest.raises(LabError, match="Kubernetes node"):
        safety.check(tmp_path)


def test_a_pod_is_on_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(LabError, match="Kubernetes node"):
        safety.check(tmp_path)


def test_one_run_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safety, "_QUEUE_S", 0.0)
    said: list[str] = []
    first, second = safety.alone(tmp_path, said.append), safety.alone(tmp_path, said.append)
    with first, pytest.raises(LabError, match="another run"), second:
        pass
    with safety.alone(tmp_path, said.append):
        assert said == ["waiting for another run of the lab to end"]


def test_who_waits_comes_before_who_has_just_ended(tmp_path: Path) -> None:
    order: list[str] = []
    has_asked = threading.Event()

    def wait() -> None:
        with safety.alone(tmp_path, lambda _: has_asked.set()):
            order.append("who waited")

    waiting = threading.Thread(target=wait)
    with safety.alone(tmp_path, order.append):
        waiting.start()
        assert has_asked.wait(10)
    with safety.alone(tmp_path, lambda _: None):
        order.append("who came again")
    waiting.join()
    assert order == ["who waited", "who came again"]
