"""One connection to systemd, over the system bus or PID 1's own socket: authenticate, ask many
things at once, take the answers.

All questions of a round are written in one go and answered in one go, so that a round costs one
wait for the daemon. Nothing is started by asking, and systemd is not asked to send signals: it
would send every change of every unit for as long as we live.
"""

import os
from pathlib import Path
from typing import Any, Final, NamedTuple

from necroscope.errors import SourceUnavailable
from necroscope.model.names import clean
from necroscope.sources.daemon_socket import DaemonSocket, HungUp, is_there
from necroscope.sources.systemd import wire

# The bus lets every user ask; PID 1's own socket lets only root, and only from its own pid
# namespace.
SYSTEM_BUS: Final = "/run/dbus/system_bus_socket"
PRIVATE: Final = "/run/systemd/private"
SERVICE: Final = "org.freedesktop.systemd1"
MANAGER_PATH: Final = "/org/freedesktop/systemd1"
MANAGER: Final = "org.freedesktop.systemd1.Manager"
PROPERTIES: Final = "org.freedesktop.DBus.Properties"
TIMEOUT_S: Final = 5.0
_ROUND_BYTES: Final = 32 << 20
# dbus-daemon refuses more than 128 calls without an answer on one connection
# (max_replies_per_connection).
_AT_ONCE: Final = 64
# What is asked about is not there: a unit that is gone, a property that this systemd does not have.
_NOT_THERE: Final = (
    "UnknownObject",
    "UnknownProperty",
    "UnknownInterface",
    "UnknownMethod",
    "InvalidArgs",
    "NoSuchUnit",
)


class BusQuestion(NamedTuple):
    """A method call; its arguments are texts, lists of texts and truths."""

    path: str
    interface: str
    member: str
    arguments: tuple[wire.Argument, ...] = ()


def get(path: str, interface: str, name: str) -> BusQuestion:
    return BusQuestion(path, PROPERTIES, "Get", (f"{SERVICE}.{interface}", name))


class Bus:
    """Open until something goes wrong; then the owner makes another."""

    def __init__(self, root: Path, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._buffer = bytearray()
        self._serial = 0
        self._destination = ""
        self._socket = self._connect(root)
        try:
            self._authenticate()
        except BaseException:
            self._socket.close()
            raise

    def ask(self, questions: list[BusQuestion]) -> list[tuple[Any, ...] | None]:
        """The answer to each, in order; None where what is asked about is not there."""
        try:
            return [
                None if answer is None else answer.body() for answer in self.messages(questions)
            ]
        except wire.MalformedMessage as error:
            raise _unavailable(error) from None

    def messages(self, questions: list[BusQuestion]) -> list[wire.Message | None]:
        """The answers unread, for a caller that only compares them with the last ones."""
        self._socket.set_deadline(self._timeout_s)
        self._socket.allow_bytes(_ROUND_BYTES)
        answers: list[wire.Message | None] = []
        for start in range(0, len(questions), _AT_ONCE):
            answers += self._ask_some(questions[start : start + _AT_ONCE])
        return answers

    def close(self) -> None:
        self._socket.close()

    def _connect(self, root: Path) -> DaemonSocket:
        """The bus, or PID 1's own socket on a node without one."""
        path = PRIVATE if is_there(root, PRIVATE) and not is_there(root, SYSTEM_BUS) else SYSTEM_BUS
        self._destination = SERVICE if path == SYSTEM_BUS else ""
        try:
            return DaemonSocket.connect_unix(root, path, self._timeout_s, _ROUND_BYTES)
        except SourceUnavailable as error:
            raise SourceUnavailable(
                error.facts, error.hint or "mount the node's /run below --host-root"
            ) from None

    def _authenticate(self) -> None:
        """SASL EXTERNAL: the socket itself says who we are."""
        self._socket.send(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
        reply = self._line()
        if not reply.startswith(b"OK "):
            raise SourceUnavailable(
                f"systemd's bus refuses the recorder: {clean(reply)}", "run as root"
            )
        self._begin()

    def _begin(self) -> None:
        """dbus-daemon accepts every connection, looks for the user's groups, and hangs up without a
        word if it finds none.

        It never finds those of a user that systemd made up for a service, which it may not ask
        (SYSTEMD_NSS_DYNAMIC_BYPASS).
        """
        hello = BusQuestion("/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")
        try:
            self._socket.send(b"BEGIN\r\n")
            if self._destination:
                self._receive([self._send([hello], "org.freedesktop.DBus")])
        except HungUp as error:
            hint = (
                "the bus knows no user that DynamicUser= made up; make it: systemd-sysusers"
                " --inline 'u necroscope -'"
            )
            raise SourceUnavailable(error.facts, hint if os.geteuid() else "") from None

    def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            self._take_bytes()
            if len(self._buffer) > 4096:
                raise SourceUnavailable("what answers on systemd's socket does not speak D-Bus")
        line, _, rest = bytes(self._buffer).partition(b"\r\n")
        self._buffer = bytearray(rest)
        return line

    def _ask_some(self, questions: list[BusQuestion]) -> list[wire.Message | None]:
        first = self._send(questions, self._destination)
        return self._receive(list(range(first, first + len(questions))))

    def _send(self, questions: list[BusQuestion], destination: str) -> int:
        """Returns the serial number of the first."""
        first = self._serial + 1
        self._serial += len(questions)
        calls = [
            wire.pack_call(first + at, q.path, q.interface, q.member, destination, q.arguments)
            for at, q in enumerate(questions)
        ]
        self._socket.send(b"".join(calls))
        return first

    def _receive(self, serials: list[int]) -> list[wire.Message | None]:
        """Answers in the order of their questions; signals, such as that we got a name, are passed
        over.
        """
        waiting = set(serials)
        answers: dict[int, wire.Message] = {}
        try:
            while waiting:
                message = wire.parse_message(self._message())
                if message.reply_serial in waiting and message.kind in (wire.RETURN, wire.ERROR):
                    waiting.remove(message.reply_serial)
                    if message.kind == wire.RETURN:
                        answers[message.reply_serial] = message
                    elif message.error_name.rpartition(".")[2] not in _NOT_THERE:
                        raise SourceUnavailable(
                            f"systemd's bus: {clean(message.error_name)}:"
                            f" {clean(str(message.body()))}"
                        )
        except wire.MalformedMessage as error:
            raise _unavailable(error) from None
        return [answers.get(serial) for serial in serials]

    def _message(self) -> bytes:
        while (length := wire.message_bytes(self._buffer)) is None or len(self._buffer) < length:
            self._take_bytes()
        message = bytes(self._buffer[:length])
        del self._buffer[:length]
        return message

    def _take_bytes(self) -> None:
        data = self._socket.receive()
        if not data:
            raise HungUp("systemd's bus closed the connection")
        self._buffer += data


def _unavailable(error: wire.MalformedMessage) -> SourceUnavailable:
    return SourceUnavailable(f"systemd's bus does not speak D-Bus: {clean(str(error))}")


def runs_systemd(root: Path) -> bool:
    """As sd_booted(3) reports."""
    return (root / "run/systemd/system").is_dir()
