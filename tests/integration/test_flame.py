"""`necroscope flame` as a user types it: every format read back, times, filters, comparisons, and
what goes wrong.
"""

import gzip
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.drawn_recording import draw
from tests.integration.flame_command import SVG, FlameCommand, folded, svg_titles
from tests.unit.interchange.writers.conftest import pprof_class  # noqa: F401 - a fixture

from necroscope.cli.flame_outputs import OUTPUTS
from necroscope.model.reading import Gap

OLDEST = Path(__file__).parents[1] / "data" / "formats" / "v1"
# Begins at 2025-10-09T08:53:20Z. The first five seconds are the baseline, then core 1 walks
# zombies.
DRAWN = """
    time:    0.0    1.0    2.0    3.0     4.0     5.0        6.0             7.0             8.0    9.0
    cpu:     0      1      0      1       0       1          1               1               0      0
    pid:     7      8      7      8       7       8          8               8               7      0
    comm:    sh     kubelet  sh   kubelet  sh     kubelet    kubelet         kubelet         sh     swapper/0
    cgroup:  /a     /k     /a     /k      /a      /k         /k/pod          /k/pod          /a     /
             main   main   main   main    main    main       main            main            main   start@kernel
             read   sync   read   sync    read    stat       stat            stat            read   irq@kernel
             .      .      .      .       .       .          walk@kernel     walk@kernel     .      .
"""
ALL_FORMATS = list(OUTPUTS)


@pytest.fixture
def flame(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> FlameCommand:
    return FlameCommand(monkeypatch, capfdbinary)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return draw(tmp_path / "recording", DRAWN, until=10)


def test_every_format_is_written_of_the_oldest_recording_too(flame, tmp_path):
    for name in ALL_FORMATS:
        done = flame(OLDEST, "--format", name, "-o", tmp_path / name)
        assert (done.code, done.out) == (0, b""), name
        assert (tmp_path / name).stat().st_size > 10
    assert folded(flame(OLDEST, "--format", "folded")) == {"start;x+0x4d": 12}


def test_the_suffix_tells_the_format(flame, recording, tmp_path):
    for name, start in (
        ("a.svg", b"<?xml"),
        ("a.HTML", b"<!doctype html>"),
        ("a.folded", b"main;"),
        ("a.speedscope.json", b'{"$schema"'),
        ("a.firefox.json", b'{"meta"'),
        ("a.pb.gz", b"\x1f\x8b"),
        ("a.txt", b"node-a"),
    ):
        assert flame(recording, "-o", tmp_path / name).code == 0
        assert (tmp_path / name).read_bytes().startswith(start), name
    assert flame(recording, "-o", tmp_path / "a.heatmap.svg").code == 0
    assert svg_titles((tmp_path / "a.heatmap.svg").read_bytes())[0] == "Heat map of node-a"


def test_svg_is_a_graph_of_the_window_and_core_that_were_asked_for(flame, recording):
    done = flame(
        recording,
        "--format",
        "svg",
        "--cpu",
        "1",
        "--from",
        "2025-10-09T08:53:25Z",
        "--to",
        "2025-10-09T08:53:28Z",
    )
    titles = svg_titles(done.out)
    assert any(title.startswith("walk\nkernel, [kernel]\n2 samples, 66.67 %") for title in titles)
    assert "core 1" in done.out.decode()
    assert not [title for title in titles if title.startswith(("read", "sync"))]


def test_speedscope_has_a_profile_a_core_or_a_thread(flame, recording):
    cores = json.loads(flame(recording, "--format", "speedscope").out)
    assert [profile["name"] for profile in cores["profiles"]] == ["core 0", "core 1"]
    threads = json.loads(flame(recording, "--format", "speedscope", "--by", "thread").out)
    assert [profile["name"] for profile in threads["profiles"]] == [
        "swapper/0 (0)",
        "sh (7)",
        "kubelet (8)",
    ]


def test_pprof_keeps_each_sample_with_its_core(flame, recording, pprof_class):  # noqa: F811
    profile = pprof_class.FromString(
        gzip.decompress(flame(recording, "--format", "pprof", "--cpu", "1").out)
    )
    texts = profile.string_table
    labels = [
        {texts[label.key]: label.num or texts[label.str] for label in sample.label}
        for sample in profile.sample
    ]
    assert len(labels) == 5
    assert {label["cpu"] for label in labels} == {1}
    assert {label["comm"] for label in labels} == {"kubelet"}


def test_otlp_keeps_times_and_cores(flame, recording):
    classes = pytest.importorskip(
        "opentelemetry.proto.profiles.v1development.profiles_pb2", reason="no opentelemetry-proto"
    )
    data = classes.ProfilesData.FromString(
        flame(recording, "--format", "otlp", "--frames", "walk").out
    )
    (sample,) = data.resource_profiles[0].scope_profiles[0].profiles[0].samples
    assert [time_ns // 10**9 for time_ns in sample.timestamps_unix_nano] == [
        1_760_000_006,
        1_760_000_007,
    ]


def test_firefox_has_tracks_of_cores_and_threads(flame, recording):
    profile = json.loads(flame(recording, "--format", "firefox").out)
    assert {"events", "core 0", "core 1", "kubelet", "sh"} <= {
        thread["name"] for thread in profile["threads"]
    }
    of_cores = json.loads(flame(recording, "--format", "firefox", "--by", "core").out)
    assert [thread["name"] for thread in of_cores["threads"]] == ["events", "core 0", "core 1"]


def test_firefox_has_the_events_of_the_window_as_markers(flame):
    profile = json.loads(flame(OLDEST, "--format", "firefox", "--to", "2025-10-09T08:53:23Z").out)
    assert profile["threads"][0]["markers"]["length"] == 2


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (["--comm", "sh", "--comm", "nobody"], {"main;read": 4}),
        (["--pid", "8", "--to", "2025-10-09T08:53:25Z"], {"main;sync": 2}),
        (["--tid", "7", "--from", "-3s"], {"main;read": 1}),
        (["--cgroup", "/k/pod"], {"main;stat;walk": 2}),
        (["--frames", "^st.t$"], {"main;stat": 1, "main;stat;walk": 2}),
        (["--state", "interrupt"], {"start;irq": 1}),
        (["--state", "kernel", "--state", "interrupt"], {"main;stat;walk": 2, "start;irq": 1}),
        (["--cpu", "0,1-3", "--frames", "walk", "--callers"], {"walk;stat;main": 2}),
        (
            ["--frames", "walk", "--by", "name", "--by", "core"],
            {"kubelet;core 1;main;stat;walk": 2},
        ),
        (["--at", "2025-10-09T08:53:26.5", "--around", "2s"], {"main;stat;walk": 2}),
        (["--from", "-3s", "--to", "-2s"], {"main;stat;walk": 1}),
    ],
)
def test_filters_groups_and_times(flame, recording, words, paths):
    assert folded(flame(recording, "--format", "folded", *words)) == paths


def test_relative_times_count_from_the_end_of_the_recording(flame, recording):
    found = json.loads(flame(recording, "--json", "--from", "-4s").out)
    assert (found["from"], found["samples"]) == ("2025-10-09T08:53:26.000Z", 4)


def test_text_is_a_table_of_functions_and_groups(flame, recording):
    lines = flame(recording, "--by", "process", "--top", "2").out.decode().splitlines()
    assert lines[0].startswith("node-a, all cores: 2025-10-09T08:53:20.000Z to")
    assert "  50.0%         5  kubelet (8)" in lines
    assert "  40.0%   40.0%         4  read  /bin/program" in lines
    assert any(line.startswith("and ") and "more functions" in line for line in lines)


def test_json_says_the_same(flame, recording):
    found = json.loads(flame(recording, "--json", "--cpu", "1").out)
    walk = next(each for each in found["functions"] if each["function"] == "walk")
    assert walk == {
        "function": "walk", "module": "[kernel]", "kind": "kernel", "self": 2, "total": 2, "self_share": 0.4, "total_share": 0.4,
    }  # fmt: skip
    assert found["left_out"] == ["5 samples do not pass the filter"]


def test_what_was_left_out_is_a_note_on_standard_error(flame, tmp_path):
    gap = Gap(
        "samples",
        1_760_000_002_000_000_000,
        1_760_000_003_000_000_000,
        "ring \x1b[31moverran",
        1,
        3,
    )
    done = flame(
        draw(tmp_path / "gap", DRAWN, gaps=[gap]),
        "--format",
        "folded",
        "--from",
        "2025-10-09T08:53:00Z",
    )
    notes = done.said.splitlines()
    assert (
        notes[0]
        == "note: 2025-10-09T08:53:00.000Z to 2025-10-09T08:53:20.000Z: the recording begins"
        " after it"
    )
    assert notes[1].endswith(r"ring \x1b[31moverran, core 1, 3 lost")
    assert "\x1b" not in done.said


def test_the_time_limit_is_reported(flame, recording):
    done = flame(recording, "--time-limit", "0s")
    assert done.code == 2
    assert "the time limit of 0 s" in done.said


def test_a_comparison_marks_what_is_new(flame, recording):
    done = flame(
        recording,
        "--format",
        "svg",
        "--from",
        "-5s",
        "--baseline",
        "2025-10-09T08:53:20Z..2025-10-09T08:53:25Z",
    )
    assert done.code == 0
    assert "new in the window" in done.out.decode()
    assert "only in the baseline" in done.out.decode()


def test_a_comparison_as_text_and_json_descends_into_new_code(flame, recording):
    words = [
        "--cpu",
        "1",
        "--from",
        "-5s",
        "--baseline",
        "2025-10-09T08:53:20Z..2025-10-09T08:53:25Z",
    ]
    text = flame(recording, *words).out.decode()
    assert re.search(r"^   66\.7% +– +\+66\.7%  walk  \[kernel\]$", text, re.MULTILINE)
    assert "paths that are new in the window\n  100.0%  main → stat" in text
    assert "paths that are only in the baseline\n  100.0%  main → sync" in text
    found = json.loads(flame(recording, *words, "--json").out)
    assert found["baseline"]["samples"] == 2
    assert found["appeared"] == [{"share": 1.0, "path": ["main", "stat"]}]
    changes = {each["function"]: each["change"] for each in found["functions"]}
    assert changes["stat"] == 1.0
    assert changes["sync"] == -1.0


HOSTILE = """
    comm:  <script>alert(1)</script>    a;b\x1b[31m
           <script>alert(2)</script>    "quote'&amp;
           ]]><script>alert(3)          x;y
"""


@pytest.mark.parametrize("name", ALL_FORMATS)
def test_hostile_names_stay_text(flame, tmp_path, name):
    recording = draw(tmp_path / "hostile", HOSTILE)
    words = ["--by", "name"] if name in ("svg", "html", "folded", "text") else []
    out = flame(
        recording,
        "--format",
        name,
        *words,
        "--comm",
        "<script>alert(1)</script>",
        "--comm",
        "a;b\x1b[31m",
    ).out
    assert out
    assert b"\x1b" not in (b"" if name in ("pprof", "otlp") else out)
    if name == "svg":
        assert len(list(ET.fromstring(out).iter(f"{SVG}script"))) == 2
    if name == "html":
        assert out.count(b"<script") == 2
    if name == "folded":
        assert rb"a\x3bb\x1b[31m;" in out
        assert all(line.rsplit(" ", 1)[1].isdigit() for line in out.decode().splitlines())


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["--from", "soon"], "'soon' is not a valid moment"),
        (["--from", "-1s", "--to", "-2s"], "is empty"),
        (
            ["--from", "2020-01-01", "--to", "2020-01-02"],
            "the recording is from 2025-10-09T08:53:20.000Z to 2025-10-09T08:53:30.000Z",
        ),
        (["--comm", "nobody\x1b[31m"], r"comm nobody\x1b[31m; 10 samples do not pass the filter"),
        (["--cpu", "seven"], "'seven' is not a list of cores"),
        (["--cpu", "0-99999999999"], "is not a list of cores"),
        (["--cpu", "5-2"], "is not a list of cores"),
        (["--frames", "("], "not a valid regular expression"),
        (["--time-limit", "long"], "'long' is not a valid duration"),
        (["--state", "asleep"], "asleep"),
        (["--by", "colour"], "colour"),
        (["--format", "flac"], "flac"),
        (["-o", "x.png"], "does not name a format"),
        (["-o", "x.json"], "does not name a format"),
        (["--json", "--format", "svg"], "cannot be combined"),
        (["--baseline", "-9s..-5s", "--format", "folded"], "folded cannot show a comparison"),
        (["--baseline", "-9s..-5s", "--format", "pprof"], "pprof cannot show a comparison"),
        (["--baseline", "-9s"], "is not a stretch"),
        (["--baseline", "2020-01-01..2020-01-02"], "no samples from 2020-01-01"),
        (["--callers"], "text cannot be turned"),
        (["--by", "core", "--format", "otlp"], "otlp cannot be grouped by core"),
        (["--by", "core", "--by", "thread", "--format", "firefox"], "cannot be grouped"),
        (["--format", "heatmap-svg", "--rows", "0"], "0 rows"),
        (["--format", "heatmap-svg", "--column", "1ms"], "not a whole number of seconds"),
        (
            ["--format", "heatmap-svg", "--from", "2020-01-01", "--to", "2020-01-02"],
            "the recording is from",
        ),
        (["-o", "/nonexistent/x.svg"], "cannot write /nonexistent/x.svg"),
    ],
)
def test_what_goes_wrong_is_reported_with_a_way_out(flame, recording, words, fact):
    done = flame(recording, *words)
    assert done.code in (1, 2)
    assert done.out == b""
    assert done.said.startswith("error: ")
    assert fact in done.said
    assert "hint: " in done.said
    assert "\x1b" not in done.said


def test_pictures_do_not_go_to_a_terminal_but_tables_do(recording):
    code, shown = in_terminal(recording, "--format", "svg")
    assert code == 2
    assert "hint: give -o FILE.svg" in shown
    code, shown = in_terminal(recording, "--top", "3")
    assert code == 0
    assert max(map(len, shown.splitlines())) <= 200


def in_terminal(*words: object) -> tuple[int, str]:
    """Exit code and what stood on a terminal."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "necroscope", "flame", *map(str, words)]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave) as child:
        os.close(slave)
        shown = b""
        try:
            while piece := os.read(master, 4096):
                shown += piece
        except OSError:
            pass  # the last process with the terminal has ended
    os.close(master)
    return child.returncode, shown.decode()


def test_a_reader_that_goes_away_is_no_error(recording):
    command = f"{sys.executable} -m necroscope flame {recording} --format html | head -c 10"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True)
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr
