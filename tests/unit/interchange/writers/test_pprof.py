"""pprof: read back by protobuf with the published schema, and by speedscope's own pprof
importer.
"""

import gzip
import io
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from necroscope.interchange.writers.pprof import write_pprof

SCRIPT = Path(__file__).parents[3] / "data/interchange/writers/speedscope_import.js"
START_NS = 1_790_000_000_000_000_000
MS = 1_000_000


def written(tables: Any, facts: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    write_pprof(tables, facts, out, **options)
    return out.getvalue()


@pytest.fixture
def decoded(pprof_class: Any) -> Callable[[bytes], Any]:
    return lambda content: pprof_class.FromString(gzip.decompress(content))


def labels(profile: Any, sample: Any) -> dict[str, int | str]:
    text = profile.string_table
    return {text[label.key]: text[label.str] if label.str else label.num for label in sample.label}


def names(profile: Any, sample: Any) -> list[str]:
    functions = {function.id: profile.string_table[function.name] for function in profile.function}
    locations = {
        location.id: functions[location.line[0].function_id] for location in profile.location
    }
    return [locations[number] for number in sample.location_id]


def test_each_sample_has_its_stack_time_and_core(decoded: Any, tables: Any, facts: Any) -> None:
    profile = decoded(written(tables, facts))
    assert len(profile.sample) == 6
    first, third = profile.sample[0], profile.sample[2]
    assert names(profile, first) == ["mem_cgroup_iter", "do_syscall_64", "work", "main"]
    assert list(first.value) == [1, 10 * MS]
    assert labels(profile, first) == {
        "timestamp": START_NS,
        "cpu": 0,
        "pid": 10,
        "tid": 10,
        "comm": "app",
        "cgroup": "/app.service",
    }
    assert labels(profile, third)["cpu"] == 1
    assert names(profile, profile.sample[5]) == ["[stack lost]"]


def test_core_0_has_a_unit_because_readers_drop_a_label_without_number_and_unit(
    decoded: Any, tables: Any, facts: Any
) -> None:
    profile = decoded(written(tables, facts))
    assert all(
        label.str or label.num or label.num_unit
        for sample in profile.sample
        for label in sample.label
    )


def test_head_says_what_when_and_what_was_left_out(decoded: Any, tables: Any, facts: Any) -> None:
    profile = decoded(written(tables, facts))
    text = profile.string_table
    assert text[0] == ""
    assert [(text[kind.type], text[kind.unit]) for kind in profile.sample_type] == [
        ("samples", "count"),
        ("cpu", "nanoseconds"),
    ]
    assert (profile.time_nanos, profile.duration_nanos, profile.period) == (
        START_NS,
        100 * MS,
        10 * MS,
    )
    assert text[profile.comment[1]] == "2 s of samples: journal torn"


def test_a_frame_without_a_symbol_keeps_its_address_and_build_id(
    decoded: Any, tables: Any, facts: Any
) -> None:
    profile = decoded(written(tables, facts))
    mappings = {mapping.id: mapping for mapping in profile.mapping}
    (location,) = [location for location in profile.location if location.address]
    mapping = mappings[location.mapping_id]
    assert location.address == 0x1F3A0
    assert mapping.memory_start <= location.address < mapping.memory_limit
    assert profile.string_table[mapping.build_id].startswith("abcdef01")
    assert not mapping.has_functions
    assert all(other.has_functions for other in profile.mapping if other.id != mapping.id)


def test_samples_of_a_bucket_are_one(decoded: Any, tables: Any, facts: Any) -> None:
    profile = decoded(written(tables, facts, bucket_ns=100 * MS))
    (twice,) = [sample for sample in profile.sample if sample.value[0] == 2]
    assert names(profile, twice)[0] == "mem_cgroup_iter"
    assert sum(sample.value[0] for sample in profile.sample) == 6


def test_unknown_cores_and_cgroups_have_no_label(decoded: Any, tables: Any, facts: Any) -> None:
    samples = tables.samples
    index = samples.schema.get_field_index("cpu")
    unknown = samples.set_column(
        index, samples.schema.field(index), pa.array([-1] * samples.num_rows, pa.int16())
    )
    profile = decoded(
        written(SimpleNamespace(samples=unknown, stacks=tables.stacks, frames=tables.frames), facts)
    )
    assert "cpu" not in labels(profile, profile.sample[0])


def test_the_same_window_gives_the_same_bytes(tables: Any, facts: Any) -> None:
    assert written(tables, facts) == written(tables, facts)


def test_hostile_names_come_back_as_they_were(decoded: Any, hostile: Any, facts: Any) -> None:
    profile = decoded(written(hostile.tables, facts))
    assert names(profile, profile.sample[-1])[::-1] == hostile.texts
    assert [labels(profile, sample)["comm"] for sample in profile.sample] == hostile.texts


def test_speedscope_imports_it(tables: Any, facts: Any, importers: Path, tmp_path: Path) -> None:
    file = tmp_path / "window.pb.gz"
    file.write_bytes(written(tables, facts))
    result = subprocess.run(
        ["node", str(SCRIPT), str(importers), str(file)], capture_output=True, text=True, timeout=60
    )
    (profile,) = json.loads(result.stdout)["profiles"]
    assert profile["total"] == 6
    assert (profile["frames"]["main"], profile["frames"]["mem_cgroup_iter"]) == (5, 2)


def test_pprof_itself_reads_it(tables: Any, facts: Any, tmp_path: Path) -> None:
    command = (
        [shutil.which("pprof")] if shutil.which("pprof") else [shutil.which("go"), "tool", "pprof"]
    )
    if command[0] is None:
        pytest.skip("neither pprof nor go is installed")
    file = tmp_path / "window.pb.gz"
    file.write_bytes(written(tables, facts))
    result = subprocess.run(
        [*map(str, command), "-top", str(file)], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert "mem_cgroup_iter" in result.stdout
