"""Every setting of the recorder: name, default, unit, help. The command line, the settings file and
the docs read this table.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from necroscope.errors import UsageError
from necroscope.model.definitions import LONGEST_SEGMENT_NS
from necroscope.model.units import (
    NS_PER_S,
    format_bytes,
    format_duration,
    parse_bytes,
    parse_duration_ns,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """`unit` says how a value is written: duration, bytes, hertz, percent, switch or text."""

    name: str
    default: str
    unit: str
    help: str


SETTINGS: Final = (
    Setting("hz", "97", "hertz", "stack samples a second on each core"),
    Setting(
        "idle-filter",
        "on",
        "switch",
        "drop samples of idle cores in the kernel, by BPF, while no other BPF program is at a"
        " kprobe or tracepoint: its samples would be dropped too",
    ),
    Setting("tick", "1s", "duration", "how often counters are read, 100ms to 10s"),
    Setting(
        "waits", "20ms", "duration", "shortest wait of a task that is recorded, up to 2s; 0s: none"
    ),
    Setting("segment", "5m", "duration", "length of a segment"),
    Setting(
        "flush", "3s", "duration", "how often the journal is made durable: what a crash can lose"
    ),
    Setting("max-bytes", "4GiB", "bytes", "size of the ring of segments; the oldest goes first"),
    Setting("max-age", "7d", "duration", "age after which a segment goes"),
    Setting(
        "pin-bytes", "1GiB", "bytes", "size of the segments kept around incidents, beside the ring"
    ),
    Setting("pin-before", "5m", "duration", "how much is kept before an incident"),
    Setting("pin-after", "2m", "duration", "how much is kept after an incident"),
    Setting(
        "free-floor",
        "15",
        "percent",
        "free space of the disk below which old segments go (256 MiB around incidents stay), then"
        " recording pauses",
    ),
    Setting(
        "budget", "5", "percent", "share of one core the recorder may use before it lowers its rate"
    ),
    Setting(
        "host-root",
        "/",
        "text",
        "where the node's /proc, /sys and /dev are mounted, in a container",
    ),
    Setting("patterns", "", "text", "file of your own kernel log patterns (TOML)"),
    Setting("units", "10s", "duration", "how often systemd's units are read; 0s: never"),
    Setting("containers", "10s", "duration", "how often containers are read; 0s: never"),
    Setting(
        "facts",
        "1h",
        "duration",
        "how often the facts that tell nodes apart are collected; 0s: never",
    ),
    Setting(
        "cloud-metadata",
        "off",
        "switch",
        "ask the cloud's metadata service (IMDSv2) for zone and instance type",
    ),
    Setting(
        "ray-root",
        "/tmp/ray",
        "text",
        "where Ray keeps its sessions, on the node and in its containers; empty: no Ray",
    ),
    Setting(
        "ray-dashboard", "", "text", "Ray's dashboard to ask too, for example http://127.0.0.1:8265"
    ),
    Setting(
        "verdicts",
        "on",
        "switch",
        "judge incidents while recording, in a process of its own, and keep what is around them",
    ),
    Setting("push", "", "text", "collector to push to, for example https://collector:7443"),
    Setting("push-token-file", "", "text", "file with the token for the collector"),
    Setting(
        "push-ca-file",
        "",
        "text",
        "certificates to trust when pushing (PEM); empty: those of the system",
    ),
    Setting(
        "push-labels",
        "",
        "text",
        "file of key=value lines, or a downward API volume: labels to push besides",
    ),
)
_LABELS: Final = "labels"
_LONGEST_NUMBER: Final = 20
_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one run, in the units the code uses."""

    hz: int
    is_idle_filtered: bool
    tick_ns: int
    waits_ns: int
    segment_ns: int
    flush_ns: int
    max_bytes: int
    max_age_ns: int
    pin_bytes: int
    pin_before_ns: int
    pin_after_ns: int
    free_floor_ratio: float
    budget_ratio: float
    host_root: Path
    patterns: Path | None
    units_ns: int
    containers_ns: int
    facts_ns: int
    is_cloud_metadata_asked: bool
    ray_root: str | None
    ray_dashboard: str | None
    keeps_verdicts: bool
    push_url: str | None
    push_token_file: Path | None
    push_ca_file: Path | None
    push_labels: Path | None


def parse(values: Mapping[str, str]) -> Settings:
    """Settings from texts by name; those not given have their default."""
    for name in values:
        if name not in _BY_NAME:
            raise UsageError(
                f"there is no setting {name!r}", f"settings are: {', '.join(sorted(_BY_NAME))}"
            )
    text = {setting.name: values.get(setting.name, setting.default) for setting in SETTINGS}
    tick_ns = _between("tick", text["tick"], parse_duration_ns, NS_PER_S // 10, 10 * NS_PER_S)
    return Settings(
        hz=_between("hz", text["hz"], _whole, 1, 10_000),
        is_idle_filtered=_switch("idle-filter", text["idle-filter"]),
        tick_ns=tick_ns,
        waits_ns=_between("waits", text["waits"], parse_duration_ns, 0, 2 * NS_PER_S),
        segment_ns=_between(
            "segment", text["segment"], parse_duration_ns, 5 * NS_PER_S, LONGEST_SEGMENT_NS
        ),
        flush_ns=_between("flush", text["flush"], parse_duration_ns, NS_PER_S // 10, 60 * NS_PER_S),
        max_bytes=_between("max-bytes", text["max-bytes"], parse_bytes, 1 << 20, 1 << 50),
        max_age_ns=_between(
            "max-age", text["max-age"], parse_duration_ns, 60 * NS_PER_S, 3650 * 86400 * NS_PER_S
        ),
        pin_bytes=_between("pin-bytes", text["pin-bytes"], parse_bytes, 0, 1 << 50),
        pin_before_ns=_between(
            "pin-before", text["pin-before"], parse_duration_ns, 0, 86400 * NS_PER_S
        ),
        pin_after_ns=_between(
            "pin-after", text["pin-after"], parse_duration_ns, 0, 86400 * NS_PER_S
        ),
        free_floor_ratio=_between("free-floor", text["free-floor"], _whole, 0, 90) / 100,
        budget_ratio=_between("budget", text["budget"], _whole, 1, 100) / 100,
        host_root=Path(text["host-root"]),
        patterns=_path(text["patterns"]),
        units_ns=_between("units", text["units"], parse_duration_ns, 0, 3600 * NS_PER_S),
        containers_ns=_between(
            "containers", text["containers"], parse_duration_ns, 0, 3600 * NS_PER_S
        ),
        facts_ns=_between("facts", text["facts"], parse_duration_ns, 0, 86400 * NS_PER_S),
        is_cloud_metadata_asked=_switch("cloud-metadata", text["cloud-metadata"]),
        ray_root=text["ray-root"] or None,
        ray_dashboard=text["ray-dashboard"] or None,
        keeps_verdicts=_switch("verdicts", text["verdicts"]),
        push_url=text["push"] or None,
        push_token_file=_path(text["push-token-file"]),
        push_ca_file=_path(text["push-ca-file"]),
        push_labels=_path(text["push-labels"]),
    )


def read_file(path: Path) -> dict[str, str]:
    """Settings from a TOML file: `hz = 97`, `max-bytes = "4GiB"`; labels in a table of their own
    are left to the caller.
    """
    return {name: str(value) for name, value in _read_toml(path).items() if name != _LABELS}


def read_labels(path: Path) -> dict[str, str]:
    """The [labels] table of a settings file: `zone = "us-east-1a"`."""
    labels = _read_toml(path).get(_LABELS, {})
    if not isinstance(labels, dict):
        raise UsageError(
            f"settings file {path}: labels is not a table",
            'write it as: [labels] and below it zone = "us-east-1a"',
        )
    return {name: str(value) for name, value in labels.items()}


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(
            f"cannot read settings file {path}: {error.strerror}",
            "check --settings: it is a file you may read",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"settings file {path} is not valid TOML: {error}", "write it as: hz = 97"
        ) from None


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _switch(name: str, text: str) -> bool:
    if text not in ("on", "off"):
        raise UsageError(f"setting {name}: {text!r} is neither on nor off", _BY_NAME[name].help)
    return text == "on"


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > _LONGEST_NUMBER:
        raise UsageError(f"{text!r} is not a whole number")
    return int(text)


def _between(name: str, text: str, parse_text: Callable[[str], int], low: int, high: int) -> int:
    try:
        value = parse_text(text)
    except UsageError as error:
        raise UsageError(
            f"setting {name}: {error.facts}", error.hint or _BY_NAME[name].help
        ) from None
    if not low <= value <= high:
        setting = _BY_NAME[name]
        told = {"duration": format_duration, "bytes": format_bytes}.get(setting.unit, str)
        raise UsageError(
            f"setting {name}: {text} is out of range",
            f"{told(low)} to {told(high)}: {setting.help}",
        )
    return value
