"""The `units` table and the events between two looks, from what a real systemd said."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.fake_daemon import never, unix_daemon
from tests.synthetic_root import at_second
from tests.unit.sources.systemd.conftest import LIST, CapturedBus

from necroscope.errors import SourceUnavailable
from necroscope.model.reading import Moment, Reading
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.sources.systemd import units as units_module
from necroscope.sources.systemd.bus import Bus
from necroscope.sources.systemd.units import Units

COLUMNS = [column.name for column in TABLES["units"].columns]
UNIT = "/org/freedesktop/systemd1/unit/"


def says_nothing(reading: Reading) -> bool:
    return not reading.rows and not reading.gaps and reading.trouble is None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    return tmp_path


def make(root: Path, bus: CapturedBus) -> Units:
    return Units(
        root,
        10 * NS_PER_S,
        lambda ns: ns,
        realtime=lambda: at_second(0).time_ns,
        open_bus=lambda _: bus,
    )  # type: ignore[arg-type,return-value]


def look(source: Units, second: float) -> Reading:
    """A round begun at this second, taken when it is done."""
    source.read(at_second(second))
    source._work.wait(10)
    return source.read(at_second(second + 1))


def rows(reading: Reading) -> dict[str, dict[str, Any]]:
    return {
        str(row[1]): dict(zip(COLUMNS, row, strict=True)) for row in reading.rows.get("units", [])
    }


def events(reading: Reading) -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for row in reading.rows.get("events", []):
        fields = json.loads(str(row[13]))
        found[str(row[1]), fields["unit"]] = fields | {
            "time": row[0],
            "by_kernel": row[9],
            "message": row[11],
        }
    return found


def test_the_first_look_writes_every_unit_with_what_systemd_says_of_it(
    root: Path, captured: CapturedBus
) -> None:
    source = make(root, captured)
    reading = look(source, 0)
    found = rows(reading)
    assert len(found) > 60
    crasher = found["crasher.service"]
    assert (crasher["time"], crasher["load_state"], crasher["active_state"]) == (
        at_second(1).time_ns,
        "loaded",
        "activating",
    )
    assert (crasher["result"], crasher["main_code"], crasher["main_status"]) == ("exit-code", 1, 3)
    assert (crasher["file_state"], crasher["preset"], crasher["fragment"]) == (
        "enabled",
        "enabled",
        "/etc/systemd/system/crasher.service",
    )
    assert crasher["restarts"] > 700
    assert found["dbus.service"]["cgroup"].endswith("/system.slice/dbus.service")
    assert found["dbus.service"]["main_pid"] > 1
    assert found["preparer.service"]["main_status"] is None, "its main process never ran"
    assert events(reading) == {}
    assert source.read(at_second(2)).trouble is None
    source.close()


def test_a_timer_says_what_it_starts_and_how_often(root: Path, captured: CapturedBus) -> None:
    found = rows(look(make(root, captured), 0))
    timer = found["tenth.timer"]
    assert (timer["starts"], timer["period_ns"]) == ("tenth.service", 10 * NS_PER_S)
    assert timer["schedule"] == "OnUnitActiveUSec=10s OnBootUSec=1s"
    assert 0 < timer["next_ns"] - timer["last_ns"] < 11 * NS_PER_S
    daily = found["apt-daily.timer"]
    assert (daily["schedule"], daily["last_ns"], daily["period_ns"]) == (
        "OnCalendar=*-*-* 06,18:00:00",
        None,
        None,
    )
    assert daily["next_ns"] > 1_700_000_000 * NS_PER_S


def test_restarts_between_two_looks_are_events_with_their_number(
    root: Path, captured: CapturedBus
) -> None:
    source = make(root, captured)
    before = rows(look(source, 0))
    captured.now = 1
    reading = look(source, 10)
    found, outcome = rows(reading), events(reading)
    assert {"crasher.service", "preparer.service", "tenth.timer"} <= found.keys() <= before.keys()
    assert len(found) < 10, "only what changed"
    assert outcome.keys() == {
        ("unit_restart", "crasher.service"),
        ("unit_restart", "preparer.service"),
    }
    crasher = outcome["unit_restart", "crasher.service"]
    assert (
        crasher["restarts"] - before["crasher.service"]["restarts"] == crasher["restarts_now"] > 10
    )
    assert (
        crasher["message"]
        == f"crasher.service restarted {crasher['restarts_now']} times: exit-code, status 3"
    )
    assert crasher["time"] == found["crasher.service"]["started_ns"]
    assert crasher["by_kernel"] is False
    assert outcome["unit_restart", "preparer.service"]["time"] == at_second(10).time_ns, (
        "nobody tells when it was"
    )
    source.close()


def test_a_unit_between_two_restarts_is_asked_though_it_looks_as_before(
    root: Path, captured: CapturedBus
) -> None:
    source = make(root, captured)
    before = rows(look(source, 0))["preparer.service"]
    assert (before["active_state"], before["sub_state"]) == ("activating", "auto-restart")
    path = f"{UNIT}preparer_2eservice Properties Get org.freedesktop.systemd1.Service NRestarts"
    captured.changed[path] = before["restarts"] + 2
    assert events(look(source, 10))["unit_restart", "preparer.service"]["restarts_now"] == 2
    source.close()


def test_a_look_at_rest_asks_little(root: Path, captured: CapturedBus) -> None:
    source = make(root, captured)
    look(source, 0)
    first = len(captured.asked)
    look(source, 10)
    assert len(captured.asked) - first < first / 5
    source.close()


def test_a_new_segment_writes_all_again_without_asking(root: Path, captured: CapturedBus) -> None:
    source = make(root, captured)
    count = len(rows(look(source, 0)))
    asked = len(captured.asked)
    assert source.read(at_second(3)).rows == {}
    source.start_segment()
    assert len(source.read(at_second(4)).rows["units"]) == count
    assert len(captured.asked) == asked
    source.close()


def changed(bus: CapturedBus, name: str, active: str, sub: str, **properties: Any) -> None:
    """From now on the unit looks so."""
    bus.changed[LIST] = [
        (*unit[:3], active, sub, *unit[5:]) if unit[0] == name else unit for unit in bus.listed()
    ]
    path = UNIT + name.replace(".", "_2e").replace("-", "_2d")
    for property_name, value in properties.items():
        interface = (
            "Service"
            if property_name in ("NRestarts", "Result", "ExecMainCode", "ExecMainStatus")
            else "Unit"
        )
        bus.changed[
            f"{path} Properties Get org.freedesktop.systemd1.{interface} {property_name}"
        ] = value


def test_a_unit_that_fails_is_an_event(root: Path, captured: CapturedBus) -> None:
    source = make(root, captured)
    look(source, 0)
    changed(
        captured,
        "cron.service",
        "failed",
        "failed",
        Result="signal",
        ExecMainCode=2,
        ExecMainStatus=9,
    )
    found = events(look(source, 10))
    assert (
        found["unit_failed", "cron.service"]["message"] == "cron.service failed: signal, signal 9"
    )
    captured.changed.clear()
    assert ("unit_failed", "cron.service") not in events(look(source, 20))
    source.close()


def test_a_restart_by_hand_is_an_event_though_the_counter_stays(
    root: Path, captured: CapturedBus
) -> None:
    source = make(root, captured)
    look(source, 0)
    changed(captured, "dbus.service", "active", "running", InvocationID=b"another")
    assert events(look(source, 10))["unit_restart", "dbus.service"]["restarts_now"] == 1
    source.close()


def test_a_unit_that_systemd_dropped_is_said_to_be_unloaded(
    root: Path, captured: CapturedBus
) -> None:
    source = make(root, captured)
    look(source, 0)
    captured.changed[LIST] = [unit for unit in captured.listed() if unit[0] != "cron.service"]
    assert rows(look(source, 10))["cron.service"]["load_state"] == "unloaded"
    source.close()


def test_hostile_names_are_made_printable(root: Path, captured: CapturedBus) -> None:
    captured.changed[LIST] = [
        ("\x1b[2J.service", "", "loaded", "active", "running", "", "/p", 0, "", "/")
    ]
    assert list(rows(look(make(root, captured), 0))) == ["\\x1b[2J.service"]


def test_too_many_units_are_cut_with_a_gap(
    root: Path, captured: CapturedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units_module, "UNIT_LIMIT", 5)
    source = make(root, captured)
    reading = look(source, 0)
    assert len(rows(reading)) == 5
    assert "units beyond 5 were not read" in reading.gaps[0].cause
    assert look(source, 10).gaps == []
    source.close()


def test_a_bus_that_fails_is_trouble_until_it_answers_again(
    root: Path, captured: CapturedBus
) -> None:
    failing = [True]

    def open_bus(_: Path) -> Bus:
        if failing[0]:
            raise SourceUnavailable("the bus is down")
        return captured  # type: ignore[return-value]

    source = Units(root, 10 * NS_PER_S, lambda ns: ns, open_bus=open_bus)
    reading = look(source, 0)
    assert (reading.trouble.facts if reading.trouble else None) == "the bus is down"
    assert source.read(at_second(5)).trouble is reading.trouble, (
        "the same one, so that it becomes one gap"
    )
    failing[0] = False
    assert look(source, 10).trouble is None
    source.close()


def test_a_connection_that_failed_is_not_used_again(root: Path, captured: CapturedBus) -> None:
    class Breaking(CapturedBus):
        def messages(self, questions: Any) -> Any:
            raise SourceUnavailable("systemd's bus closed the connection")

    buses = [Breaking(captured.rounds), captured]
    source = Units(root, 10 * NS_PER_S, lambda ns: ns, open_bus=lambda _: buses.pop(0))  # type: ignore[arg-type,return-value]
    first = buses[0]
    assert look(source, 0).trouble is not None
    assert first.is_closed
    assert look(source, 10).trouble is None
    source.close()


def test_a_hung_bus_never_holds_the_loop(root: Path) -> None:
    with unix_daemon(root / "run/dbus/system_bus_socket", never, closes=False):
        source = Units(
            root, 10 * NS_PER_S, lambda ns: ns, open_bus=lambda where: Bus(where, timeout_s=0.2)
        )
        assert says_nothing(source.read(at_second(0)))
        assert says_nothing(source.read(at_second(1)))
        source._work.wait(10)
        trouble = source.read(at_second(2)).trouble
        assert trouble is not None
        assert "did not answer in time" in trouble.facts
        source.close()


def test_without_systemd_nothing_is_missed(tmp_path: Path) -> None:
    source = Units(tmp_path, 10 * NS_PER_S, lambda ns: ns)
    assert says_nothing(source.read(Moment(0, 0)))
    assert says_nothing(source.read(Moment(1, 20 * NS_PER_S)))
    source.close()
