"""What Amazon's network driver (ENA) writes to the kernel log when it resets a device, in the words
of its versions.

The texts are those of amzn-drivers' ena_netdev.c at the tags named here, and of the driver in the
kernel's own tree. This is the only thing that the lab emulates: there is no such device here. What
the lines tell is measured.
"""

from dataclasses import dataclass
from random import Random
from typing import Final

ERROR: Final = 3
VERSIONS: Final = ("2.5.0", "2.8.9", "2.11.0g", "2.13.2g", "2.17.0g")


@dataclass(frozen=True, slots=True)
class Silence:
    """What the driver knows of a queue when its time is up; `cpu` is the core on which it is
    polled.
    """

    queue: int
    threshold_ms: int
    since_poll_ms: int
    since_interrupt_ms: int
    is_scheduled: bool
    cpu: int


@dataclass(frozen=True, slots=True)
class Device:
    """A network device with its PCI address and the version of its driver."""

    name: str
    pci: str
    version: str

    @classmethod
    def invent(cls, random: Random, name: str) -> "Device":
        return cls(
            name,
            f"0000:{random.choice(('00:05', '00:06', '20:03', '90:00'))}.0",
            random.choice(VERSIONS),
        )

    def paused(self, silence: Silence) -> list[str]:
        """A transmit queue that stands still, and the reset that follows. Up to 2.7.1 the driver
        says nothing of its poll.
        """
        if self.version == "2.5.0":
            return [self._line("Transmit time out"), *self._reset()]
        starved = (
            [self._line("napi handler hasn't been called for a long time but is scheduled")]
            if silence.is_scheduled
            else []
        )
        return [self._line(self._paused_text(silence)), *starved, *self._reset()]

    def missing_completions(self, silence: Silence, missed: int) -> list[str]:
        """The device did not report packets as sent although its queue was polled."""
        ms, queue = silence.threshold_ms, silence.queue
        texts = {
            "2.5.0": (
                f"The number of lost tx completions is above the threshold ({missed} > 128). Reset"
                " the device"
            ),
            "2.8.9": (
                f"Lost TX completions are above the threshold ({missed} > 128). Completion"
                f" transmission timeout: {ms}."
            ),
            "2.17.0g": (
                f"[1/2] Lost TX completions are above threshold ({missed} > 128), completion"
                f" timeout: {ms} (msec), {silence.since_interrupt_ms} msecs since interrupt,"
                f" {silence.since_poll_ms} msecs since napi, qid: {queue}"
            ),
        }
        long = (
            f"Lost TX completions are above the threshold ({missed} > 128). Completion transmission"
            f" timeout: {ms} (msec). "
        )
        long += (
            f"{silence.since_interrupt_ms} msecs since last interrupt, {silence.since_poll_ms}"
            " msecs since last napi execution."
        )
        return [self._line(texts.get(self.version, long)), *self._reset()]

    def keep_alive_lost(self, since_ms: int) -> list[str]:
        """The device itself is silent."""
        newer = self.version in ("2.13.2g", "2.17.0g")
        return [
            self._line(
                "Keep alive watchdog timeout"
                + (f", {since_ms} msecs since last keep alive." if newer else ".")
            ),
            *self._reset(),
        ]

    def _paused_text(self, silence: Silence) -> str:
        text = (
            f"TX q {silence.queue} is paused for too long (threshold"
            f" {silence.threshold_ms * 1000}). "
        )
        poll_us, scheduled = silence.since_poll_ms * 1000, int(silence.is_scheduled)
        if self.version == "2.17.0g":
            tail = (
                f"usecs since napi {poll_us}. napi scheduled: {scheduled}. napi CPU:"
                f" {silence.cpu}. "
            )
            return f"{text}{tail}msecs since interrupt: {silence.since_interrupt_ms}"
        text += f"Time since last napi {poll_us} usec. napi scheduled: {scheduled}"
        return (
            f"{text}. msecs since last interrupt: {silence.since_interrupt_ms}"
            if self.version == "2.13.2g"
            else text
        )

    def _reset(self) -> list[str]:
        info = f"Driver info: Elastic Network Adapter (ENA) v{self.version}"
        done = (
            "Device reset completed, status: 0"
            if self.version in ("2.13.2g", "2.17.0g")
            else "Device reset completed successfully"
        )
        return [self._line("Trigger reset is on"), f"ena {self.pci}: {done}, {info}"]

    def _line(self, text: str) -> str:
        return f"ena {self.pci} {self.name}: {text}"


def write(lines: list[str]) -> None:
    """One record a line, as the driver's own."""
    for line in lines:
        with open("/dev/kmsg", "w", encoding="ascii") as log:
            log.write(f"<{ERROR}>{line}\n")
