"""Ray's log lines that report deaths, losses and hangs: texts of src/ray/gcs, src/ray/raylet,
python/ray/exceptions.py.

    [2026-11-16 01:41:05,492 W 20185 20185] (gcs_server) gcs_health_check_manager.cc:209: Health
    check failed for node 2bd3...

The stamp is in the zone of the process that wrote it, which in a container need not be ours.
"""

import re
from datetime import UTC, datetime
from typing import Final, NamedTuple

from necroscope.model.names import LINE_LIMIT, clean
from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.sources.ray.ray_event import RayEvent
from necroscope.sources.service_event import Fields

_STAMP: Final = re.compile(rb"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)[,.](\d{3})")
_TOLERANCE_NS: Final = 60 * NS_PER_S
_ID: Final = rb"[0-9a-f]{16,64}"


class _Pattern(NamedTuple):
    """`key` is the group that names what died; without one every line counts."""

    kind: str
    regex: re.Pattern[bytes]
    key: str | None = None


def _pattern(kind: str, regex: bytes, key: str | None = None) -> _Pattern:
    return _Pattern(kind, re.compile(regex.replace(b"<ID>", _ID)), key)


# The first that matches wins.
PATTERNS: Final = (
    _pattern(
        "ray_health_check_failed",
        rb"Health check failed for node (?P<node><ID>)(?:, remaining checks (?P<checks_left>\d+))?",
    ),
    _pattern(
        "ray_node_dead",
        rb"Node (?:(?P<node><ID>) )?is dead because the health check"
        rb" failed(?:.*node_id=(?P<node_id><ID>))?",
        "node",
    ),
    _pattern(
        "ray_node_dead",
        rb"node with node id: (?P<node><ID>) and address: (?P<address>\S+) .*has been marked dead",
        "node",
    ),
    _pattern(
        "ray_node_dead",
        rb"(?P<node>this) node(?: manager)? has (?:mistakenly )?been marked (?:as )?dead",
    ),
    # A restart is wanted only after a death that was not requested.
    _pattern(
        "ray_actor_died",
        rb"Actor is failed on worker (?P<worker><ID>) at node (?P<node><ID>), need_reschedule ="
        rb" 1.*actor_id=(?P<actor><ID>)",
        "actor",
    ),
    _pattern(
        "ray_actor_died",
        rb"Actor (?P<actor><ID>) is failed on worker (?P<worker><ID>) at node (?P<node><ID>),"
        rb" need_reschedule = 1",
        "actor",
    ),
    _pattern(
        "ray_fetch_timeout",
        rb"ray\.exceptions\.(?P<error>ObjectFetchTimedOutError)(?:: .*?object (?P<object><ID>))?",
    ),
    _pattern(
        "ray_object_lost",
        rb"ray\.exceptions\.(?P<error>ObjectLostError|ObjectReconstructionFailed\w*|OwnerDiedError|ReferenceCountingAssertionError)"
        rb"(?:: .*?object (?P<object><ID>))?",
    ),
    _pattern("ray_job_hang", rb"ray\.exceptions\.(?P<error>GetTimeoutError): (?P<reason>.{0,120})"),
)
# One search over a whole piece finds the few lines worth a closer look.
TELLING: Final = re.compile(
    rb"Health check failed|is dead because|marked (?:as )?dead|is failed on worker"
    rb"|exceptions\.(?:Object(?:Fetch|Lost|Recon)|OwnerDied|ReferenceCounting|GetTimeout)"
)


def parse(line: bytes, read_ns: int) -> RayEvent | None:
    """`read_ns` is the machine's clock when the line was read."""
    for pattern in PATTERNS:
        match = pattern.regex.search(line)
        if match is not None:
            fields = {
                name.removesuffix("_id"): clean(text)
                for name, text in match.groupdict().items()
                if text is not None
            }
            key = fields.get(pattern.key) if pattern.key is not None else None
            values: Fields = {
                name: int(text) if text.isdecimal() and len(text) < 10 else text
                for name, text in fields.items()
            }
            return RayEvent(
                _stamp_ns(line, read_ns), pattern.kind, key, clean(line, LINE_LIMIT), values
            )
    return None


def _stamp_ns(line: bytes, read_ns: int) -> int | None:
    """As UTC and as our own zone: the later of the two that is not in the future."""
    match = _STAMP.match(line)
    if match is None:
        return None
    try:
        moment = datetime.fromisoformat(match[1].decode("ascii"))
        seconds = (int(moment.replace(tzinfo=UTC).timestamp()), int(moment.timestamp()))
    except (ValueError, OverflowError, OSError):
        return None
    past = [second for second in seconds if second * NS_PER_S <= read_ns + _TOLERANCE_NS]
    return max(past) * NS_PER_S + int(match[2]) * NS_PER_MS if past else None
