"""Interrupts by core, with the network queue behind each: /proc/interrupts (kernel/irq/proc.c,
arch/*/kernel/irq.c), /proc/irq.

Rows are written where interrupts came since the last read. Besides, each interrupt of a network
device gets a row of count 0 for every core of its affinity at the first read, at the start of a
segment and when its affinity changes, so that the way from queue to core is known even of a queue
that stands still. ERR and MIS are counted once for the machine, not by core, and left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.names import clean
from necroscope.model.reading import Moment, Reading, Rows, Source
from necroscope.model.tables import TABLES
from necroscope.sources.kept_file import KeptFile, read_once
from necroscope.sources.procfs.counters import increases_32_bit
from necroscope.sources.sysfs import cpus as cpu_list
from necroscope.sources.sysfs import netdev_irqs
from necroscope.sources.sysfs.netdev_irqs import NetworkDevices

# The network device and queue behind an interrupt, from the name its driver gave it and from what
# sysfs knows. Names by driver: ena `eth0-Tx-Rx-3`; ixgbe, igb, bnxt `eth0-TxRx-0`; i40e, ice,
# iavf `i40e-eth0-TxRx-7`; vmxnet3 `eth0-rxtx-1`; xen `eth0-q0-rx`; mlx5
# `mlx5_comp3@pci:0000:3b:00.0`; mlx4 `mlx4-3@0000:01:00.0`; mana `mana_q3@pci:7870:00:00.0`;
# virtio `virtio2-input.0`; gve, with the number of the transmit queue, `gve-ntfy-
# blk3@pci:0000:00:04.0`. Before commit 843711459391 (v6.3) gve asked for its interrupts before
# the device had a name, and they are called `eth%d-ntfy-block.3` to the letter. A driver with one
# interrupt for all its queues gives it the device's own name (e1000e: `eth0`), and on a shared
# line the names stand side by side: `uhci_hcd:usb1, eth0`.

_BY_DEVICE_NAME: Final = re.compile(
    r"(?P<device>.+?)-(?:tx-?rx|rx-?tx|rx|tx|fp|q|ntfy-block\.)-?(?P<queue>\d+)(?:-[rt]x)?",
    re.IGNORECASE,
)
_BY_BUS_NAME: Final = (
    re.compile(r"(?P<device>virtio\d+)-(?:(?:input|output)\.(?P<queue>\d+)|\S+)"),
    re.compile(
        r"(?:mlx5_comp|mlx4-|mana_q|(?:gve-)?ntfy-blk)(?P<queue>\d+)@(?:pci:)?(?P<device>\S+)"
    ),
    re.compile(r"[^@]+(?P<queue>(?!))?@(?:pci:)?(?P<device>\S+)"),
)


def device_and_queue(
    irq: str, action: str, devices: NetworkDevices
) -> tuple[str | None, int | None]:
    """Both None if the interrupt is not a network device's; the queue alone is None for one of
    control or of all queues.
    """
    named, queue = _from_name(action, devices)
    device = devices.by_irq.get(irq) or named
    return (device, queue) if device is not None else (None, None)


def _from_name(action: str, devices: NetworkDevices) -> tuple[str | None, int | None]:
    for pattern in _BY_BUS_NAME:
        match = pattern.fullmatch(action)
        if match is not None:
            return devices.by_bus_name.get(match["device"]), _number(match["queue"])
    match = _BY_DEVICE_NAME.fullmatch(action)
    if match is None:
        return next((name for name in action.split(", ") if name in devices.names), None), None
    return _match_device(match["device"], devices.names), _number(match["queue"])


def _match_device(name: str, names: frozenset[str]) -> str | None:
    """The device as sysfs spells it, with or without the driver before it; without sysfs the name
    is believed.
    """
    _driver, dash, rest = name.partition("-")
    if name in names or not names:
        return name
    return rest if dash and rest in names else None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


# An interrupt that no driver has requested ends with its trigger instead of an action: `2-edge`,
# `27 Level`.
_NO_ACTION: Final = re.compile(r"\d*[- ]?(?:edge|level|fasteoi)?", re.IGNORECASE)


class Line(NamedTuple):
    """One interrupt: `label` is its number or name, `counts` one number for each CPU of the
    header.
    """

    label: str
    action: str
    counts: tuple[int, ...]


def parse_header(line: bytes) -> tuple[int, ...]:
    """The CPUs of the columns; those offline are left out."""
    cpus = tuple(int(name) for name in line.replace(b"CPU", b"").split())
    if not cpus:
        raise ValueError("it is empty or cut")
    return cpus


def parse_line(line: bytes, cpu_count: int) -> Line | None:
    """None for ERR and MIS, which are not counted by core."""
    label, _colon, rest = line.partition(b":")
    fields = rest.split(None, cpu_count)
    if len(fields) <= cpu_count:
        return None
    *numbers, text = fields
    name = label.strip().decode("ascii", "replace")
    # The action follows at least two spaces, and chip names may hold single ones (`Hyper-V PCIe
    # MSI`).
    action = (
        text.decode("utf-8", "backslashreplace").rpartition("  ")[2]
        if name.isdigit()
        else text.decode("ascii", "replace")
    )
    action = "" if _NO_ACTION.fullmatch(action.strip()) else action.strip()
    return Line(name, clean(action), tuple(map(int, numbers)))


@dataclass(slots=True)
class Interrupt:
    """What is kept of one interrupt between reads."""

    raw: bytes
    cpus: tuple[int, ...]
    line: Line
    device: str | None
    queue: int | None
    affinity: str | None

    def rises(
        self, line: Line, cpus: tuple[int, ...], elapsed_ns: int
    ) -> Iterator[tuple[int, int]]:
        """CPU and count, where interrupts came; nothing if they were reset."""
        before = self.line.counts
        if cpus != self.cpus:
            at = dict(zip(self.cpus, before, strict=True))
            before = tuple(at.get(cpu, count) for cpu, count in zip(cpus, line.counts, strict=True))
        rises = increases_32_bit(line.counts, before, elapsed_ns) or ()
        return ((cpu, rise) for cpu, rise in zip(cpus, rises, strict=False) if rise)


class Interrupts(Source):
    """Read every 10 s and when a trigger fires: making the file costs the kernel a number for each
    interrupt and core.
    """

    name = "interrupts"
    tables: tuple[str, ...] = ("interrupts",)
    period_s = TABLES["interrupts"].period_s
    is_read_at_trigger = True

    def __init__(self, root: Path) -> None:
        self._root = root
        self._file = KeptFile(root / "proc/interrupts")
        self._irq_folder = root / "proc/irq"
        self._match_device: dict[bytes, Interrupt] = {}
        self._read_at: Moment | None = None
        self._starts_segment = False
        self._devices: netdev_irqs.NetworkDevices | None = None

    def start_segment(self) -> None:
        """The next read tells again which cores each network interrupt may go to."""
        self._starts_segment = True

    def read(self, now: Moment) -> Reading:
        cpus, lines = self._file.parse(_split)
        elapsed_ns = now.monotonic_ns - (self._read_at or now).monotonic_ns
        rows: Rows = []
        known: dict[bytes, Interrupt] = {}
        self._devices = None
        for raw in lines:
            label = raw[: raw.index(b":")]
            before = self._match_device.get(label)
            after = self._follow(before, raw, cpus)
            if after is not None:
                known[label] = after
                rows += self._rows(before, after, now.time_ns, elapsed_ns)
        self._match_device, self._read_at, self._starts_segment = known, now, False
        return Reading({"interrupts": rows})

    def close(self) -> None:
        self._file.close()

    def _follow(
        self, before: Interrupt | None, raw: bytes, cpus: tuple[int, ...]
    ) -> Interrupt | None:
        """The interrupt as it is now; a line whose bytes did not change is not parsed again."""
        if before is not None and before.raw == raw and before.cpus == cpus:
            line: Line | None = before.line
        else:
            line = parse_line(raw, len(cpus))
        if line is None:
            return None
        if before is None or before.line.action != line.action:
            device, queue = (
                device_and_queue(line.label, line.action, self._network_devices())
                if line.label.isdigit()
                else (None,) * 2
            )
            return Interrupt(raw, cpus, line, device, queue, self._affinity(line.label))
        affinity = before.affinity if before.device is None else self._affinity(line.label)
        return Interrupt(raw, cpus, line, before.device, before.queue, affinity)

    def _rows(
        self, before: Interrupt | None, after: Interrupt, time_ns: int, elapsed_ns: int
    ) -> Rows:
        line = after.line
        names = (line.label, line.action, after.device, after.queue, after.affinity)
        is_new = before is None or before.line.action != line.action
        counts: dict[int, int] = {}
        if after.device is not None and (
            is_new or self._starts_segment or (before and before.affinity != after.affinity)
        ):
            counts = dict.fromkeys(cpu_list.parse(after.affinity or ""), 0)
        if before is not None and not is_new and before.raw != after.raw:
            counts.update(before.rises(line, after.cpus, elapsed_ns))
        return [(time_ns, cpu, *names, elapsed_ns, count) for cpu, count in counts.items()]

    def _network_devices(self) -> netdev_irqs.NetworkDevices:
        """Read from sysfs once a read, and only when there is an interrupt not seen before."""
        if self._devices is None:
            self._devices = netdev_irqs.read(self._root)
        return self._devices

    def _affinity(self, label: str) -> str | None:
        """The cores it goes to; before 4.13, and on other architectures, those it may go to. None
        for LOC and its like.
        """
        if not label.isdigit():
            return None
        for file in ("effective_affinity_list", "smp_affinity_list"):
            text = read_once(f"{self._irq_folder}/{label}/{file}")
            if text and text.strip():
                return clean(text.strip())
        return None


def _split(data: bytes) -> tuple[tuple[int, ...], list[bytes]]:
    header, *lines = data.splitlines()[: data.count(b"\n")] or [b""]
    return parse_header(header), [line for line in lines if b":" in line]
