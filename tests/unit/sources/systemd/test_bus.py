"""The connection: authentication, many questions at once, and every way in which the other side can
misbehave.
"""

import struct
import time
from pathlib import Path

import pytest
from tests.fake_daemon import Answer, never, unix_daemon
from tests.unit.sources.systemd.test_wire import reply

from necroscope.errors import SourceUnavailable
from necroscope.sources.systemd import wire
from necroscope.sources.systemd.bus import Bus, BusQuestion, get, runs_systemd

SOCKET = "run/dbus/system_bus_socket"
ASK = BusQuestion("/p", "i.f", "M")


def speaking(error: str = "") -> Answer:
    """A bus that lets everybody in and answers every call with 5, or with an error."""

    def answer(data: bytes) -> bytes | None:
        if data.startswith(b"\0AUTH EXTERNAL "):
            return b"OK 1234\r\n" if data.endswith(b"\r\n") else None
        data = data.removeprefix(b"BEGIN\r\n")
        replies = b""
        while data:
            length = wire.message_bytes(data)
            if length is None or len(data) < length:
                return None
            (serial,) = struct.unpack_from("<I", data, 8)
            signal = reply(b"", b"", kind=4, serial=serial)
            replies += signal + reply(
                b"\x05\0\0\0",
                b"u",
                kind=wire.ERROR if error else wire.RETURN,
                serial=serial,
                error=error,
            )
            data = data[length:]
        return replies or None

    return answer


def test_many_questions_get_their_answers_and_signals_are_passed_over(tmp_path: Path) -> None:
    with unix_daemon(tmp_path / SOCKET, speaking(), closes=False):
        bus = Bus(tmp_path)
        assert bus.ask([ASK] * 600) == [(5,)] * 600
        assert bus.ask([get("/p", "Unit", "X")]) == [(5,)]
        bus.close()


def test_what_is_not_there_has_no_answer_and_other_errors_are_reported(tmp_path: Path) -> None:
    errors = ["org.freedesktop.systemd1.NoSuchUnit"]

    def answer(data: bytes) -> bytes | None:
        if b"AUTH" in data or b"Hello" in data:
            return speaking()(data)
        return speaking(error=errors[0])(data)

    with unix_daemon(tmp_path / SOCKET, answer, closes=False):
        bus = Bus(tmp_path)
        assert bus.ask([ASK, ASK]) == [None, None]
        errors[0] = "org.freedesktop.DBus.Error.LimitsExceeded"
        with pytest.raises(SourceUnavailable, match="LimitsExceeded"):
            bus.ask([ASK])
        bus.close()


def test_no_more_calls_wait_for_an_answer_than_a_bus_allows(tmp_path: Path) -> None:
    with unix_daemon(tmp_path / SOCKET, speaking(), closes=False) as daemon:
        bus = Bus(tmp_path)
        bus.ask([ASK] * 600)
        assert max(data.count(b"i.f") for data in daemon.heard) < 128
        bus.close()


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        (never, "did not answer in time"),
        (lambda _: b"REJECTED EXTERNAL\r\n", "refuses the recorder: REJECTED EXTERNAL"),
        (lambda _: b"x" * 5000, "does not speak D-Bus"),
        (lambda _: b"", "closed the connection"),
        (lambda data: b"OK 1\r\n" if b"AUTH" in data else b"\xff" * 64, "does not speak D-Bus"),
    ],
    ids=["hangs", "refuses", "babbles", "closes", "other bytes"],
)
def test_a_bus_that_misbehaves_is_unavailable_within_its_deadline(
    tmp_path: Path, answer: Answer, facts: str
) -> None:
    started = time.monotonic()
    with (
        unix_daemon(tmp_path / SOCKET, answer, closes=False),
        pytest.raises(SourceUnavailable, match=facts),
    ):
        Bus(tmp_path, timeout_s=0.2)
    assert time.monotonic() - started < 5


def test_a_bus_that_hangs_after_the_greeting_costs_the_deadline(tmp_path: Path) -> None:
    greeted = []

    def answer(data: bytes) -> bytes | None:
        if b"AUTH" in data or b"Hello" in data:
            greeted.append(data)
            return speaking()(data)
        return None

    with unix_daemon(tmp_path / SOCKET, answer, closes=False):
        bus = Bus(tmp_path, timeout_s=0.2)
        with pytest.raises(SourceUnavailable, match="did not answer in time"):
            bus.ask([ASK])
        bus.close()
    assert len(greeted) == 2


def test_without_a_socket_the_way_out_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="No such file") as caught:
        Bus(tmp_path)
    assert "--host-root" in caught.value.hint


def test_systemd_is_seen_by_its_directory(tmp_path: Path) -> None:
    assert not runs_systemd(tmp_path)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    assert runs_systemd(tmp_path)


@pytest.mark.parametrize(("uid", "hint"), [(61_000, "systemd-sysusers"), (0, "")])
def test_a_bus_that_hangs_up_on_a_user_it_does_not_know_has_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, hint: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    with unix_daemon(tmp_path / SOCKET, speaking()), pytest.raises(SourceUnavailable) as caught:
        Bus(tmp_path)
    assert hint in caught.value.hint
    assert bool(hint) == bool(caught.value.hint)


def test_a_bus_that_only_does_not_answer_is_not_said_to_know_no_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 61_000)
    lets_in = unix_daemon(
        tmp_path / SOCKET,
        lambda data: b"OK 1234\r\n" if b"BEGIN" not in data else None,
        closes=False,
    )
    with lets_in, pytest.raises(SourceUnavailable, match="did not answer in time") as caught:
        Bus(tmp_path, timeout_s=0.3)
    assert not caught.value.hint
