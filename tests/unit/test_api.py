"""The Python API: what it promises, what it costs to import, and every way to say a moment."""

import doctest
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from importlib.resources import files
from pathlib import Path

import pytest

import necroscope
from necroscope import api

DEMO = Path(str(files("necroscope.lab"))) / "demo_recording"
PAGE = Path(__file__).parents[2] / "docs" / "python-api.md"


@pytest.fixture
def recording() -> Iterator[necroscope.NodeRecording]:
    with necroscope.open(DEMO) as opened:
        yield opened


def test_the_promise_is_sorted_and_each_name_is_there_and_documented() -> None:
    promised = ["FlameGraph", "Incident", "NecroscopeError", "NodeRecording", "Verdict"]
    assert necroscope.__all__ == [*promised, "__version__", "open"]
    assert [*promised, "open"] == api.__all__
    page = PAGE.read_text("utf-8")
    public = [name for name in vars(necroscope.NodeRecording) if not name.startswith("_")]
    assert not [name for name in (*promised, *public) if name not in page and name != "close"]
    assert all(getattr(necroscope, name).__doc__ for name in promised)


def test_a_name_that_is_not_promised_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="Store"):
        _ = necroscope.Store  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing() -> None:
    code = (
        "import sys; before = {*sys.modules}; import necroscope;"
        " print(*{*sys.modules} - before, necroscope.__version__)"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert loaded.split() == ["necroscope", necroscope.__version__]


def test_the_examples_on_the_page_and_in_docstrings_are_true(
    recording: necroscope.NodeRecording,
) -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert (failed, tried > 15) == (0, True)
    given = {"necroscope": necroscope, "recording": recording, "directory": DEMO}
    failed, tried = doctest.testmod(api, extraglobs=given)
    assert (failed, tried) == (0, 5)


def test_a_moment_can_be_said_in_every_way(recording: necroscope.NodeRecording) -> None:
    first = datetime(2026, 11, 16, 4, 0, 10, tzinfo=UTC)
    same = [
        "2026-11-16T04:00:10Z",
        "2026-11-16T04:00:10",
        "2026-11-16T05:00:10+01:00",
        first,
        first.replace(tzinfo=None),
        first.astimezone(timezone(timedelta(hours=-5))),
        int(first.timestamp()) * 1_000_000_000,
    ]
    rows = {recording.table("cores", moment).num_rows for moment in same}
    assert rows == {16}
    assert recording.table("cores", "-3s").num_rows == 6
    assert recording.table("cores", to=first).num_rows == recording.tables["cores"] - 16


def test_a_data_frame_has_timestamps(recording: necroscope.NodeRecording) -> None:
    frame = recording.data_frame("cores", "-3s")
    assert str(frame.dtypes["time"]) == "datetime64[ns, UTC]"
    assert frame.time.min() > datetime(2026, 11, 16, 4, 0, 15, tzinfo=UTC)
    assert len(recording.data_frame("frames", columns=["function"])) == 6552


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        (lambda recording: recording.table("core"), "no table 'core'"),
        (lambda recording: recording.table("cores", columns=["x"]), "no column 'x'"),
        (lambda recording: recording.table("cores", "yesterday"), "'yesterday'"),
        (lambda recording: recording.table("cores", "-1s", "-2s"), "is empty"),
        (lambda recording: recording.flame(group_by=["zone"]), "grouped by 'zone'"),
        (lambda recording: recording.flame(frames="("), "regular expression"),
        (lambda _: necroscope.open(DEMO / "nothing"), "no directory"),
    ],
)
def test_a_wrong_question_is_an_error_with_a_way_out(
    recording: necroscope.NodeRecording, question: object, facts: str
) -> None:
    assert callable(question)
    with pytest.raises(necroscope.NecroscopeError, match=facts) as raised:
        question(recording)
    assert raised.value.hint


def test_a_closed_recording_says_so() -> None:
    with necroscope.open(DEMO) as recording:
        assert recording.node == "vm"
    with pytest.raises(necroscope.NecroscopeError, match="closed"):
        recording.incidents()


def test_a_flame_graph_says_which_cores_and_windows_it_shows(
    recording: necroscope.NodeRecording,
) -> None:
    flame = recording.flame("-30s", cpus=[1, 0], group_by=["core"])
    assert flame.samples == sum(int(line.split()[-1]) for line in flame.folded().splitlines())
    assert flame.folded().startswith("core 0;")
    assert "cores 0, 1" in flame.svg()
    assert "compared with baseline" in flame.svg(recording.flame(to="-30s"))
    assert flame._repr_svg_() == flame.svg()
    assert recording.flame("-30s", cpus=[1]).left_out


def test_incidents_are_those_of_the_window(recording: necroscope.NodeRecording) -> None:
    (incident,) = recording.incidents()
    assert recording.incidents(to=incident.from_ns) == ()
    assert [one.id for one in recording.incidents(to=incident.to_ns)] == [incident.id]
