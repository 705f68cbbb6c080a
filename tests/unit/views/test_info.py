"""What a recording holds: the keys that are promised, and lines that no name in it can break."""

from dataclasses import replace

from tests.written_recording import NS, WrittenSegment, at, new_recording, row

from necroscope.model.reading import Gap
from necroscope.model.units import NS_PER_S
from necroscope.segment.recording import Pin
from necroscope.store.query import RecordingInfo, Store
from necroscope.views.info import clock_lead_ns, info_to_json, info_to_text

START_NS = 1_794_780_000 * NS_PER_S
INFO = RecordingInfo(
    schema=3,
    node="node-7",
    labels={"zone": "us-east-1a"},
    from_ns=START_NS,
    to_ns=START_NS + 90 * NS_PER_S,
    cpus=96,
    segments=1,
    bytes=4096,
    tables={"samples": 12, "cores": 8640},
    gaps=[
        Gap("log", START_NS, START_NS + NS_PER_S, "no /dev/kmsg", cpu=3, lost=5),
        Gap("nics", START_NS, START_NS, "no ethtool"),
    ],
    lost_samples=2,
    idle_samples=40,
    pins=[Pin(START_NS, START_NS + NS_PER_S, "saturated: system 99 %")],
)
EMPTY = replace(
    INFO, from_ns=None, to_ns=None, cpus=None, segments=0, bytes=0, tables={}, gaps=[], pins=[]
)
# A line of its own, a cleared screen, a title, C1's CSI, and text that reads backwards.
HOSTILE = "a\nnode      b\r\x1b[2J\x1b]0;title\x07\x9b31m\u202eevil\u200b"


def test_the_json_has_the_keys_that_are_promised() -> None:
    answer = info_to_json(INFO)
    assert list(answer) == [
        *("schema", "node", "labels", "from", "to", "cpus", "segments", "bytes", "tables"),
        *("gaps", "lost_samples", "idle_samples", "pins", "clock_lead_ns"),
    ]
    assert answer.keys() == info_to_json(EMPTY).keys()
    assert [gap.keys() for gap in answer["gaps"]] == [
        {"table", "from", "to", "cause", "cpu", "lost"},
        {"table", "from", "to", "cause"},
    ]
    assert [pin.keys() for pin in answer["pins"]] == [{"from", "to", "reason"}]
    assert (answer["tables"], answer["from"], info_to_json(EMPTY)["from"]) == (
        INFO.tables,
        "2026-11-15T22:00:00.000Z",
        None,
    )


def test_the_text_tells_who_when_and_what_is_missing() -> None:
    lines = info_to_text(INFO).splitlines()
    assert lines[0] == "node      node-7, zone=us-east-1a"
    assert "samples   12 kept, 40 of idle cores dropped, 2 lost" in lines
    assert [line.partition("Z  ")[2] for line in lines if line.startswith("gap")] == [
        "1 s       log of core 3: no /dev/kmsg (5 lost)",
        "          nics: no ethtool",
    ]
    assert lines[-1].endswith("saturated: system 99 %")
    assert info_to_text(EMPTY).splitlines()[1:] == ["nothing is recorded yet"]


def test_no_name_in_a_recording_steers_the_terminal_or_makes_a_line() -> None:
    hostile = replace(
        INFO,
        node=HOSTILE,
        labels={HOSTILE: HOSTILE},
        gaps=[Gap(HOSTILE, START_NS, START_NS, HOSTILE)],
        pins=[Pin(START_NS, START_NS + NS_PER_S, HOSTILE)],
    )
    for info, like in (
        (hostile, replace(INFO, gaps=INFO.gaps[:1])),
        (replace(EMPTY, node=HOSTILE, labels={"zone": HOSTILE}), EMPTY),
    ):
        text = info_to_text(info)
        assert all(line.isprintable() for line in text.split("\n"))
        assert text.count("\n") == info_to_text(like).count("\n")
        assert "\\x1b[2J" in text
        assert "evil" in text


def test_times_that_differ_from_the_machines_clock_are_said(tmp_path) -> None:
    recording = new_recording(tmp_path / "r")
    rows = [row("anchors", s, realtime_ns=at(s) - 90 * NS, monotonic_ns=s * NS) for s in range(3)]
    WrittenSegment(recording, 0).add("anchors", *rows).leave()
    lead_ns = clock_lead_ns(Store.open(recording))
    assert lead_ns == 90 * NS
    assert "clock     times are 1 min 30 s ahead of the machine's clock" in info_to_text(
        INFO, lead_ns
    )
    assert "clock " not in info_to_text(INFO, 1_000_000)
