"""The pictures of `diagnose --html`: timeline, heat map and flame graph of each incident, drawn
from its recording.
"""

from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Final, TypeVar

from necroscope.analysis.report import EventSeen, Incident, Report
from necroscope.errors import NecroscopeError
from necroscope.model.units import NS_PER_S
from necroscope.store.flame import read_flame
from necroscope.store.heatmap import read_heat_map
from necroscope.store.query import Store
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.views.flame.embedded import asset
from necroscope.views.flame.heading import Heading, Window
from necroscope.views.flame.heat_svg import heat_map_svg
from necroscope.views.flame.html import flame_html
from necroscope.views.report.core_map import read_core_map
from necroscope.views.report.html import Pictures
from necroscope.views.report.timeline_svg import Mark, timeline_svg

_BEFORE_NS: Final = 60 * NS_PER_S
_AFTER_NS: Final = 20 * NS_PER_S
_LONGEST_NS: Final = 600 * NS_PER_S
_MOST_CORES: Final = 24
_TIME_LIMIT_S: Final = 10.0
_MAJOR: Final = (
    "nic_",
    "soft_lockup",
    "hard_lockup",
    "rcu_",
    "hung_",
    "oom_",
    "ray_",
    "workqueue_",
    "kthread_",
)
Picture = TypeVar("Picture")


def draw(store: Store, report: Report) -> dict[str, Pictures]:
    return {incident.id: _draw(store, report, incident) for incident in report.incidents}


def _draw(store: Store, report: Report, incident: Incident) -> Pictures:
    first_ns = max(incident.from_ns - _BEFORE_NS, report.from_ns or 0)
    last_ns = min(
        incident.to_ns + _AFTER_NS, report.to_ns or incident.to_ns, first_ns + _LONGEST_NS
    )
    notes: list[str] = []

    def tried(name: str, picture: Callable[[], Picture]) -> Picture | None:
        try:
            return picture()
        except NecroscopeError as error:
            notes.append(f"{name}: {error.facts}")
            return None

    flame = tried("flame graph", lambda: _flame(store, report.node, incident))
    return Pictures(
        timeline_svg=tried("timeline", lambda: _timeline(store, incident, first_ns, last_ns)),
        heat_map_svg=tried(
            "heat map", lambda: _heat_map(store, report.node, incident, first_ns, last_ns)
        ),
        flame_page=flame,
        flame_script_hash=_script_hash() if flame else "",
        notes=tuple(notes),
    )


def _timeline(store: Store, incident: Incident, first_ns: int, last_ns: int) -> str | None:
    always = () if incident.core is None else (incident.core,)
    core_map = read_core_map(store, first_ns, last_ns, _MOST_CORES, always)
    if not core_map.cpus:
        return None
    marks = [
        Mark(event.time_ns, _told(event), event.kind.startswith(_MAJOR))
        for event in incident.events
    ]
    return timeline_svg(core_map, (incident.from_ns, incident.to_ns), incident.core, marks)


def _told(event: EventSeen) -> str:
    return " ".join(filter(None, [event.kind, event.device or ""]))


def _heat_map(
    store: Store, node: str, incident: Incident, first_ns: int, last_ns: int
) -> str | None:
    heat = read_heat_map(
        store, first_ns, last_ns, _selection(incident), limit=TimeLimit(_TIME_LIMIT_S)
    )
    window = Window(first_ns, last_ns, heat.samples)
    return (
        heat_map_svg(heat, Heading("Within each second", node, window, _cores(incident)))
        if heat.samples
        else None
    )


def _flame(store: Store, node: str, incident: Incident) -> str | None:
    tree = read_flame(
        store,
        incident.from_ns,
        incident.to_ns + 1,
        _selection(incident),
        limit=TimeLimit(_TIME_LIMIT_S),
    )
    window = Window(tree.from_ns, tree.to_ns, tree.samples)
    heading = Heading(
        f"Flame graph of {_cores(incident)} during the incident", node, window, _cores(incident)
    )
    return flame_html(tree, heading) if tree.samples else None


def _selection(incident: Incident) -> Selection:
    return Selection() if incident.core is None else Selection(cpus=frozenset({incident.core}))


def _cores(incident: Incident) -> str:
    return "all cores" if incident.core is None else f"core {incident.core}"


def _script_hash() -> str:
    """The report's policy must allow the one script that the page of the flame graph runs."""
    return f"sha256-{b64encode(sha256(asset('page.js').encode()).digest()).decode()}"
