"""Numbers of a node as the lake gets them: when they changed enough, and daily."""

from pathlib import Path

from tests.written_recording import WrittenSegment, at, new_recording, row

from necroscope.model.span import Span
from necroscope.outlets.push.gauges import Pushed, gauge_rows
from necroscope.store.query import Store

MINUTE = 60


def recorded(place: Path, dead: list[int], *, is_v1: bool = False) -> Store:
    """A look at the cgroups each minute."""
    segment = WrittenSegment(new_recording(place / "r"), 0)
    for minute, count in enumerate(dead):
        counts = {"tracked": count + 240} if is_v1 else {"dying": count}
        segment.add(
            "cgroups",
            row(
                "cgroups",
                minute * MINUTE + 30,
                controller="memory" if is_v1 else "unified",
                path="/",
                visible=240,
                **counts,
            ),
            row("cgroups", minute * MINUTE + 30, controller="unified", path="/a.slice", dying=5),
        )
        segment.add(
            "anchors", row("anchors", minute * MINUTE + 30, boottime_ns=at(minute * MINUTE))
        )
    segment.seal()
    return Store.open(place / "r")


def gauge_values(
    store: Store, minutes: int, pushed: Pushed, name: str = "dead_cgroups"
) -> list[float]:
    found = []
    for minute in range(minutes):
        span = Span(at(minute * MINUTE), at((minute + 1) * MINUTE))
        found += [row["value"] for row in gauge_rows(store, span, pushed) if row["name"] == name]
    return found


def test_a_count_is_reported_when_it_changed_by_some_percent_and_not_each_minute(
    tmp_path: Path,
) -> None:
    store = recorded(tmp_path, [1000 + minute for minute in range(80)])
    assert gauge_values(store, 80, {}) == [1000, 1051]


def test_a_count_that_stands_is_reported_once_and_the_next_day_again(tmp_path: Path) -> None:
    store = recorded(tmp_path, [500] * 20)
    pushed: Pushed = {}
    assert gauge_values(store, 20, pushed) == [500]
    pushed["dead_cgroups"][0] -= 86400 * 10**9
    assert gauge_values(store, 1, pushed) == [500]


def test_on_cgroup_v1_the_dead_are_those_that_no_directory_shows(tmp_path: Path) -> None:
    pushed: Pushed = {}
    store = recorded(tmp_path, [68_680 - 240], is_v1=True)
    assert gauge_values(store, 1, pushed) == [68_440]
    assert pushed["live_cgroups"][1] == 240


def test_what_was_not_measured_is_not_there(tmp_path: Path) -> None:
    store = recorded(tmp_path, [1])
    rows = gauge_rows(store, Span(at(0), at(MINUTE)), {})
    assert {row["name"] for row in rows} == {"dead_cgroups", "live_cgroups", "uptime_s"}
    assert gauge_rows(store, Span(at(600), at(660)), {}) == []


def test_populations_of_the_node_are_reported_and_those_of_single_processes_are_not(
    tmp_path: Path,
) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0)
    segment.add(
        "populations",
        row("populations", 5, kind="tcp-sockets", count=900),
        row("populations", 15, kind="tcp-sockets", count=1_000),
        row("populations", 15, kind="open-files", count=70, pid=7, comm="x"),
        *(row("populations", 20, kind=f"slab:{number}", count=number) for number in range(60)),
    ).seal()
    pushed: Pushed = {}
    rows = gauge_rows(Store.open(tmp_path / "r"), Span(at(0), at(MINUTE)), pushed)
    found = {each["name"]: each["value"] for each in rows}
    assert found["population:tcp-sockets"] == 1_000
    assert "population:open-files" not in found
    assert len(found) == 40
    full: Pushed = {f"population:{number}": [1.0, 1.0] for number in range(200)}
    assert gauge_rows(Store.open(tmp_path / "r"), Span(at(0), at(MINUTE)), full) == []
