"""speedscope JSON: real times for each core, read back by speedscope's own importer and held
against its schema.
"""

import io
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from necroscope.interchange.writers.speedscope import write_speedscope
from necroscope.interchange.writers.window import WindowFacts

SCRIPT = Path(__file__).parents[3] / "data/interchange/writers/speedscope_import.js"
MS = 1_000_000


def written(tables: Any, facts: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    write_speedscope(tables, facts, out, **options)
    return out.getvalue()


def imported(importers: Path, file: Path) -> dict[str, Any]:
    result = subprocess.run(
        ["node", str(SCRIPT), str(importers), str(file)], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_each_core_is_a_profile_in_real_time(tables: Any, facts: Any) -> None:
    core_0 = json.loads(written(tables, facts))["profiles"][0]
    assert (core_0["name"], core_0["unit"], core_0["endValue"]) == (
        "core 0",
        "nanoseconds",
        100 * MS,
    )
    assert core_0["weights"] == [10 * MS, 10 * MS, 10 * MS, 20 * MS, 10 * MS]
    assert [len(stack) for stack in core_0["samples"]] == [4, 4, 2, 0, 2]


def test_a_sample_lasts_until_the_next_if_that_comes_earlier(tables: Any, facts: Any) -> None:
    thread_11, core_1 = (
        json.loads(written(tables, facts, by=by))["profiles"][1] for by in ("thread", "core")
    )
    assert core_1["weights"] == [12 * MS, 10 * MS, 38 * MS, 10 * MS]
    assert thread_11["name"] == "app (11)"


def test_samples_that_come_a_little_late_leave_no_hole(tables: Any, facts: Any) -> None:
    late = WindowFacts(facts.node, facts.from_ns, facts.to_ns, 8 * MS)
    assert json.loads(written(tables, late))["profiles"][0]["weights"] == [
        10 * MS,
        10 * MS,
        8 * MS,
        22 * MS,
        8 * MS,
    ]


def test_a_sample_whose_stack_is_lost_is_shown_as_such(tables: Any, facts: Any) -> None:
    file = json.loads(written(tables, facts))
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    assert [frames[number] for number in file["profiles"][1]["samples"][-1]] == ["[stack lost]"]


def test_the_busiest_core_is_shown_first(tables: Any, facts: Any) -> None:
    assert json.loads(written(tables, facts))["activeProfileIndex"] == 0


def test_a_window_without_samples_is_a_file_all_the_same(tables: Any, facts: Any) -> None:
    empty = SimpleNamespace(
        samples=tables.samples.slice(0, 0), stacks=tables.stacks, frames=tables.frames
    )
    assert json.loads(written(empty, facts))["profiles"][0]["samples"] == []


def test_speedscope_imports_times_and_names(
    tables: Any, facts: Any, importers: Path, tmp_path: Path
) -> None:
    file = tmp_path / "window.speedscope.json"
    file.write_bytes(written(tables, facts))
    found = imported(importers, file)
    assert found["errors"] == []
    assert [(profile["name"], profile["unit"]) for profile in found["profiles"]] == [
        ("core 0", "nanoseconds"),
        ("core 1", "nanoseconds"),
    ]
    assert found["profiles"][0]["frames"] == {
        "main": 40 * MS,
        "work": 30 * MS,
        "do_syscall_64": 20 * MS,
        "mem_cgroup_iter": 20 * MS,
        "libfoo.so.1+0x1f3a0": 10 * MS,
    }


def test_speedscope_imports_hostile_names_as_they_are(
    hostile: Any, facts: Any, importers: Path, tmp_path: Path
) -> None:
    file = tmp_path / "hostile.speedscope.json"
    file.write_bytes(written(hostile.tables, facts, by="thread"))
    found = imported(importers, file)
    assert found["errors"] == []
    assert {name for profile in found["profiles"] for name in profile["frames"]} == set(
        hostile.texts
    )
