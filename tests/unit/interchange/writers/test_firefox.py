"""Firefox Profiler JSON: loaded by the viewer's own code, which upgrades and checks it, and asked
for what it shows.
"""

import io
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from necroscope.interchange.writers.firefox import write_firefox
from necroscope.interchange.writers.firefox_tables import breakpad_id
from necroscope.model.tables import TABLES
from necroscope.segment.arrow import schema_of

START_NS = 1_790_000_000_000_000_000
MS = 1_000_000
SESSION = "necroscope-test"
Ask = Callable[..., Any]


def written(tables: Any, facts: Any, **options: Any) -> dict[str, Any]:
    out = io.BytesIO()
    write_firefox(tables, facts, out, **options)
    profile: dict[str, Any] = json.loads(out.getvalue())
    return profile


@pytest.fixture
def events() -> pa.Table:
    empty = dict.fromkeys(schema_of(TABLES["events"]).names)
    reset = {
        "time": START_NS + 55 * MS,
        "kind": "nic_reset",
        "cpu": 1,
        "device": "eth0",
        "severity": 3,
        "by_kernel": True,
    }
    return pa.Table.from_pylist(
        [empty | reset | {"message": "ena <b>reset</b>"}], schema=schema_of(TABLES["events"])
    )


@pytest.fixture
def viewer(importers: Path, tmp_path: Path) -> Iterator[Callable[[dict[str, Any]], Ask]]:
    """Loads a profile into Firefox Profiler's command line; gives a function that asks it for
    JSON.
    """
    command = ["node", str(importers / "@firefox-devtools/profiler-cli/dist/profiler-cli.js")]
    environment = os.environ | {
        "PROFILER_CLI_SESSION_DIR": str(tmp_path / "sessions"),
        "PROFILER_CLI_NO_SYMBOLICATE": "1",
    }
    with ExitStack() as running:

        def ask(*words: str) -> Any:
            words = (*words, "--session", SESSION, "--json")
            result = subprocess.run(
                [*command, *words], capture_output=True, text=True, timeout=60, env=environment
            )
            assert result.returncode == 0, result.stderr + result.stdout
            return json.loads(result.stdout)

        def load(profile: dict[str, Any]) -> Ask:
            file = tmp_path / "window.json"
            file.write_text(json.dumps(profile))
            # As our own child: the command `load` gives its daemon half a second to start, and
            # leaves it behind after that.
            words = [*command, "--daemon", str(file), "--session", SESSION]
            daemon = subprocess.Popen(
                words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            running.callback(daemon.wait, 10)
            running.callback(daemon.terminate)
            # Its log, not a question: a question that a daemon still at work leaves unanswered
            # takes its session away.
            log = tmp_path / "sessions" / f"{SESSION}.log"
            while daemon.poll() is None and not (
                log.exists() and "Profile loaded" in log.read_text()
            ):
                time.sleep(0.05)
            return ask

        yield load


def test_the_viewer_shows_events_cores_and_threads(
    tables: Any, facts: Any, events: pa.Table, viewer: Any
) -> None:
    ask = viewer(written(tables, facts, events=events))
    threads = {thread["threadHandle"]: thread for thread in ask("thread", "list")["threads"]}
    assert {(thread["processName"], thread["name"]) for thread in threads.values()} == {
        ("node", "events"),
        ("cores", "core 0"),
        ("cores", "core 1"),
        ("app", "app"),
        ("nginx", "nginx"),
        ("lost", "lost"),
    }
    # The viewer does not count the first sample of a track: it does not know since when.
    assert next(
        thread["cpuMs"] for thread in threads.values() if thread["name"] == "core 0"
    ) == pytest.approx(30)
    (marker,) = ask("thread", "markers", "--thread", "t-0", "--list")["flatMarkers"]
    assert (marker["name"], marker["start"]) == ("nic_reset", 55)
    tree = json.dumps(ask("thread", "samples-top-down", "--thread", "t-1"))
    assert (
        tree.index("main")
        < tree.index("work")
        < tree.index("do_syscall_64")
        < tree.index("mem_cgroup_iter")
    )


def test_the_viewer_loads_hostile_names_as_they_are(hostile: Any, facts: Any, viewer: Any) -> None:
    ask = viewer(written(hostile.tables, facts, by="thread"))
    shown = {thread["name"] for thread in ask("thread", "list", "--limit", "100")["threads"]}
    assert shown >= set(hostile.texts)


def test_times_are_milliseconds_since_the_start(tables: Any, facts: Any) -> None:
    profile = written(tables, facts, by="core")
    assert profile["meta"]["startTime"] == START_NS / MS
    assert [thread["samples"]["time"] for thread in profile["threads"][1:]] == [
        [0, 10, 20, 50],
        [12, 60],
    ]


def test_every_index_of_the_shared_tables_exists(tables: Any, facts: Any) -> None:
    profile = written(tables, facts)
    shared = profile["shared"]
    stacks, frames, functions = shared["stackTable"], shared["frameTable"], shared["funcTable"]
    for name in (
        "stackTable",
        "frameTable",
        "funcTable",
        "resourceTable",
        "nativeSymbols",
        "sources",
    ):
        assert {len(column) for column in shared[name].values() if isinstance(column, list)} == {
            shared[name]["length"]
        }, name
    assert all(prefix is None or prefix < stack for stack, prefix in enumerate(stacks["prefix"]))
    assert max(stacks["frame"]) < frames["length"]
    assert max(frames["func"]) < functions["length"]
    assert max(functions["name"]) < len(shared["stringArray"])
    assert (
        max(stack for thread in profile["threads"] for stack in thread["samples"]["stack"])
        < stacks["length"]
    )


def test_left_out_is_said(tables: Any, facts: Any) -> None:
    assert "journal torn" in json.dumps(written(tables, facts)["meta"]["extra"])


def test_a_breakpad_id_is_the_build_id_as_a_guid() -> None:
    assert (
        breakpad_id("0123456789abcdef0123456789abcdef01234567")
        == "67452301AB89EFCD0123456789ABCDEF0"
    )
    assert breakpad_id(None) == "0" * 33
    assert breakpad_id("not hex") == "0" * 33
