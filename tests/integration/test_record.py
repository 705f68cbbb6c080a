"""The recorder on this machine: what it records, how it is stopped, and that it leaves nothing
behind.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from necroscope.store.query import Store

pytestmark = [pytest.mark.kernel, pytest.mark.root]
EVERY_TICK = {
    "samples",
    "stacks",
    "frames",
    "cores",
    "softirqs",
    "softirq_delay",
    "runqueue",
    "softnet",
    "pressure",
    "memory",
}
SPIN = "import ctypes\nctypes.CDLL(None).prctl(15, b'spinner-42', 0, 0, 0)\nwhile True: pass"
# Reading random numbers is work of the kernel; nobody else on the core gets in its way.
HOG = """
import os
os.sched_setaffinity(0, [{core}])
os.nice(-20)
file = os.open("/dev/urandom", os.O_RDONLY)
while True:
    os.read(file, 1 << 24)
"""


def info(directory: Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "necroscope", "info", "--json", str(directory)],
        capture_output=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.alone
def test_every_table_fills_and_nothing_is_left_behind(record, busy, leaks):
    spinner = busy(SPIN)
    recorder = record("--for", "5s", "--label", "zone=a", reads_kernel_log=True)
    code, facts, said = recorder.wait_for_end()
    spinner.kill()
    spinner.wait()
    assert (code, said) == (0, "")
    answer = info(recorder.directory)
    assert set(answer["tables"]) >= EVERY_TICK | {"interrupts", "nics", "cgroups", "log", "anchors"}
    assert answer["gaps"] == []
    assert (answer["lost_samples"], answer["labels"], answer["segments"]) == (0, {"zone": "a"}, 1)
    assert facts["samples"] == answer["tables"]["samples"]
    store = Store.open(recorder.directory)
    spinning = [
        row for row in store.rows("samples", 0, 1 << 62).to_pylist() if row["comm"] == "spinner-42"
    ]
    assert len(spinning) > 97, (
        "a process that never sleeps is sampled 97 times a second on some core"
    )
    assert {row["cgroup"] for row in spinning} != {None}
    assert leaks() == []


@pytest.mark.alone
def test_a_core_held_in_system_mode_is_reported_with_who_holds_it(record, busy):
    recorder = record()
    recorder.wait_for_rows("samples")
    core = max(os.sched_getaffinity(0))
    hog = busy(HOG.format(core=core))
    row = recorder.wait_until(
        lambda: [
            row
            for row in recorder.rows("tasks")
            if (row["pid"], row["trigger"]) == (hog.pid, "saturated")
        ],
        40,
    )[0]
    assert (row["cpu"], row["syscall"], row["file"]) == (core, "read", "/dev/urandom")
    assert recorder.stop()[0] == 0
    answer = info(recorder.directory)
    events = [row for row in recorder.rows("events") if row["kind"] == "core_saturated"]
    assert core in {event["cpu"] for event in events}
    assert any(pin["reason"].startswith("saturated: ") for pin in answer["pins"])


def test_a_signal_seals_and_ends_well(record):
    recorder = record()
    recorder.wait_for_rows("cores")
    code, facts, _ = recorder.stop(signal.SIGTERM)
    assert code == 0
    assert facts["segments"] == 1
    assert [
        path.name
        for path in recorder.directory.iterdir()
        if path.name.endswith((".live", ".sealing"))
    ] == []


def test_segments_follow_each_other_without_a_hole(record):
    # Beside other tests more tasks wait than are kept, which is a gap of its own.
    recorder = record("--segment", "5s", "--for", "12s", "--waits", "0s")
    code, _, _ = recorder.wait_for_end()
    assert code == 0
    answer = info(recorder.directory)
    assert answer["segments"] == 3
    # Of thousands of cgroups that the machine may have, limits are read in turns.
    assert [gap for gap in answer["gaps"] if not gap["cause"].startswith("limits of ")] == []
    rows = Store.open(recorder.directory).rows("cores", 0, 1 << 62, cpus=[0]).to_pylist()
    assert sum(row["elapsed_ns"] for row in rows) == pytest.approx(
        rows[-1]["time"] - rows[0]["time"] + rows[0]["elapsed_ns"], rel=1e-6
    )
    stacks = Store.open(recorder.directory).samples(0, 1 << 62)
    assert max(stacks.samples.column("stack").to_pylist()) < stacks.stacks.num_rows


def test_a_live_recording_can_be_read(record):
    recorder = record()
    rows = recorder.wait_for_rows("cores", 4)
    assert {row["cpu"] for row in rows} == set(range(os.cpu_count() or 1))
    assert info(recorder.directory)["tables"]["samples"] > 0


def test_two_recorders_on_one_directory_are_refused(record):
    first = record()
    first.wait_for_rows("cores")
    code, _, said = record(directory=first.directory).wait_for_end()
    assert code == 4
    assert f"another recorder (pid {first.process.pid})" in said
    assert "hint:" in said
    assert "Traceback" not in said
    assert first.stop()[0] == 0


def test_a_directory_with_other_things_in_it_is_refused(record, tmp_path):
    (tmp_path / "precious.txt").write_text("keep me")
    code, _, said = record(directory=tmp_path).wait_for_end()
    assert code == 4
    assert "holds something other" in said
    assert (tmp_path / "precious.txt").read_text() == "keep me"


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        (["--hz", "0"], "hz"),
        (["--hz", "many"], "hz"),
        (["--tick", "1ms"], "tick"),
        (["--for", "soon"], "soon"),
        (["--label", "zone"], "zone"),
        (["--max-bytes", "-1"], "max-bytes"),
        (["--settings", "/nonexistent.toml"], "/nonexistent.toml"),
        (["--host-root", "/nonexistent"], "/nonexistent"),
        (["--bogus"], "--bogus"),
    ],
)
def test_bad_words_get_facts_a_hint_and_no_traceback(record, options, fact):
    code, _, said = record(*options).wait_for_end()
    assert code != 0
    assert said.startswith("error: ")
    assert fact in said
    assert "\nhint: " in said
    assert "Traceback" not in said


def test_user_patterns_become_events(record, tmp_path):
    patterns = tmp_path / "patterns.toml"
    patterns.write_text(
        '[[pattern]]\nid = "mine.widget"\nkind = "widget_broke"\nregex = "widget (?P<device>\\\\S+)'
        ' broke"\n'
    )
    recorder = record("--patterns", str(patterns), reads_kernel_log=True)
    recorder.wait_for_rows("cores")
    Path("/dev/kmsg").write_text("necroscope test: widget w7 broke, a harmless line\n")
    event = recorder.wait_until(
        lambda: [row for row in recorder.rows("events") if row["kind"] == "widget_broke"]
    )[-1]
    assert (event["device"], event["by_kernel"]) == ("w7", False)
    assert recorder.stop()[0] == 0


def test_settings_file_and_labels_are_used(record, tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text('hz = 19\ntick = "500ms"\n[labels]\nzone = "b"\n')
    recorder = record("--settings", str(settings), "--for", "3s", "--label", "rack=7")
    assert recorder.wait_for_end()[0] == 0
    assert info(recorder.directory)["labels"] == {"zone": "b", "rack": "7"}
    rows = Store.open(recorder.directory).rows("cores", 0, 1 << 62, cpus=[0]).to_pylist()
    assert len(rows) >= 4, "two rows a second"
