"""Every setting of the recorder, said once: name, default, unit, range, help. The command line, the
settings file and the docs read this table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from necroscope.errors import UsageError
from necroscope.model.units import parse_bytes, parse_duration_ns


@dataclass(frozen=True, slots=True)
class Setting:
    """`unit` says how a value is written: duration, bytes, hertz, percent, count, switch or text.
    `low` and `high`, written the same way, are the least and the most that it may be.
    """

    name: str
    default: str
    unit: str
    purpose: str
    low: str = ""
    high: str = ""

    @property
    def help(self) -> str:
        return f"{self.purpose}; {self.low} to {self.high}" if self.high else self.purpose

    def value(self, text: str) -> Any:
        """In the units the code uses; UsageError if it is not a valid value."""
        parse_text = _PARSERS[self.unit]
        try:
            value = parse_text(text)
        except UsageError as error:
            raise UsageError(
                f"setting {self.name}: {error.facts}", error.hint or self.help
            ) from None
        if self.high and not parse_text(self.low) <= value <= parse_text(self.high):
            allowed = f"{self.low} to {self.high}: {self.purpose}"
            raise UsageError(f"setting {self.name}: {text} is out of range", allowed)
        return value


SETTINGS: Final = (
    Setting("hz", "97", "hertz", "stack samples per second on each core", "1", "10000"),
    Setting(
        "idle-filter",
        "on",
        "switch",
        "drop samples of idle cores in the kernel, by BPF, while no other BPF program is at a"
        " kprobe or tracepoint: its samples would be dropped too",
    ),
    Setting("tick", "1s", "duration", "how often counters are read", "100ms", "10s"),
    Setting(
        "waits",
        "20ms",
        "duration",
        "shortest wait of a task that is recorded; 0s: none",
        "0s",
        "2s",
    ),
    Setting("segment", "5m", "duration", "length of a segment", "5s", "1h"),
    Setting(
        "flush",
        "3s",
        "duration",
        "how often the journal is made durable: what a crash can lose",
        "100ms",
        "1m",
    ),
    Setting(
        "max-bytes",
        "4GiB",
        "bytes",
        "size of the ring of segments; the oldest goes first",
        "1MiB",
        "1024TiB",
    ),
    Setting("max-age", "7d", "duration", "age after which a segment goes", "1m", "3650d"),
    Setting(
        "pin-bytes",
        "1GiB",
        "bytes",
        "size of the segments kept around incidents, in addition to the ring",
        "0B",
        "1024TiB",
    ),
    Setting("pin-before", "5m", "duration", "how much is kept before an incident", "0s", "1d"),
    Setting("pin-after", "2m", "duration", "how much is kept after an incident", "0s", "1d"),
    Setting(
        "free-floor",
        "15",
        "percent",
        "free space of the disk below which old segments go (256 MiB around incidents stay), then"
        " recording pauses",
        "0",
        "90",
    ),
    Setting(
        "budget",
        "5",
        "percent",
        "share of one core the recorder may use before it lowers its rate",
        "1",
        "100",
    ),
    Setting(
        "host-root",
        "/",
        "text",
        "where the node's /proc, /sys and /dev are mounted, in a container",
    ),
    Setting("patterns", "", "text", "file of your own kernel log patterns (TOML)"),
    Setting(
        "units", "10s", "duration", "how often systemd's units are read; 0s: never", "0s", "1h"
    ),
    Setting(
        "containers", "10s", "duration", "how often containers are read; 0s: never", "0s", "1h"
    ),
    Setting(
        "own-log-lines",
        "0",
        "count",
        "how many of the last lines that a crash-looping unit wrote to the journal, or a re-created"
        " container printed, `check` quotes",
        "0",
        "50",
    ),
    Setting(
        "jobs",
        "5s",
        "duration",
        "how often ranks, tasks and workers of jobs are looked for; 0s: never",
        "0s",
        "1h",
    ),
    Setting(
        "jobs-below",
        "",
        "text",
        "look for jobs below this cgroup only, where several nodes share a kernel (kind, k3d)",
    ),
    Setting(
        "facts",
        "1h",
        "duration",
        "how often the facts in which nodes differ are collected; 0s: never",
        "0s",
        "1d",
    ),
    Setting(
        "own-facts",
        "",
        "text",
        "file of facts of your own: commands, files, named environment variables (TOML)",
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
        "file of key=value lines, or a downward API volume: more labels to push",
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
    own_log_lines: int
    jobs_ns: int
    jobs_below: str
    facts_ns: int
    own_facts: Path | None
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
    value = {
        setting.name: setting.value(values.get(setting.name, setting.default))
        for setting in SETTINGS
    }
    return Settings(
        hz=value["hz"],
        is_idle_filtered=value["idle-filter"],
        tick_ns=value["tick"],
        waits_ns=value["waits"],
        segment_ns=value["segment"],
        flush_ns=value["flush"],
        max_bytes=value["max-bytes"],
        max_age_ns=value["max-age"],
        pin_bytes=value["pin-bytes"],
        pin_before_ns=value["pin-before"],
        pin_after_ns=value["pin-after"],
        free_floor_ratio=value["free-floor"] / 100,
        budget_ratio=value["budget"] / 100,
        host_root=Path(value["host-root"]),
        patterns=_path(value["patterns"]),
        units_ns=value["units"],
        containers_ns=value["containers"],
        own_log_lines=value["own-log-lines"],
        jobs_ns=value["jobs"],
        jobs_below=value["jobs-below"],
        facts_ns=value["facts"],
        own_facts=_path(value["own-facts"]),
        is_cloud_metadata_asked=value["cloud-metadata"],
        ray_root=value["ray-root"] or None,
        ray_dashboard=value["ray-dashboard"] or None,
        keeps_verdicts=value["verdicts"],
        push_url=value["push"] or None,
        push_token_file=_path(value["push-token-file"]),
        push_ca_file=_path(value["push-ca-file"]),
        push_labels=_path(value["push-labels"]),
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
    import tomllib  # noqa: PLC0415 - few nodes have such a file, and each start would load it

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


def _switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise UsageError(f"{text!r} is neither on nor off")
    return text == "on"


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > _LONGEST_NUMBER:
        raise UsageError(f"{text!r} is not a valid whole number")
    return int(text)


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "duration": parse_duration_ns,
    "bytes": parse_bytes,
    "hertz": _whole,
    "percent": _whole,
    "count": _whole,
    "switch": _switch,
    "text": str,
}
