"""OTLP profiles: a round trip through the package's own classes."""

import io
from typing import Any

import pytest

from necroscope.errors import UsageError
from necroscope.interchange.writers.otlp import write_otlp

START_NS = 1_790_000_000_000_000_000
MS = 1_000_000


def decoded(tables: Any, facts: Any) -> Any:
    classes = pytest.importorskip(
        "opentelemetry.proto.profiles.v1development.profiles_pb2",
        reason="opentelemetry-proto is not installed",
    )
    out = io.BytesIO()
    write_otlp(tables, facts, out)
    return classes.ProfilesData.FromString(out.getvalue())


def attributes(data: Any, indices: Any) -> dict[str, str | int]:
    table, text = data.dictionary.attribute_table, data.dictionary.string_table
    found = [(text[table[index].key_strindex], table[index].value) for index in indices]
    return {key: getattr(value, value.WhichOneof("value")) for key, value in found}


def names(data: Any, sample: Any) -> list[str]:
    tables = data.dictionary
    locations = [
        tables.location_table[index]
        for index in tables.stack_table[sample.stack_index].location_indices
    ]
    functions = [tables.function_table[location.lines[0].function_index] for location in locations]
    return [tables.string_table[function.name_strindex] for function in functions]


def profile_of(data: Any) -> Any:
    return data.resource_profiles[0].scope_profiles[0].profiles[0]


def test_samples_of_one_stack_core_and_task_are_one_with_all_times(tables: Any, facts: Any) -> None:
    data = decoded(tables, facts)
    (twice,) = [
        sample for sample in profile_of(data).samples if len(sample.timestamps_unix_nano) == 2
    ]
    assert names(data, twice) == ["mem_cgroup_iter", "do_syscall_64", "work", "main"]
    assert list(twice.timestamps_unix_nano) == [START_NS, START_NS + 10 * MS]
    assert list(twice.values) == [1, 1]
    assert attributes(data, twice.attribute_indices) == {
        "cpu.logical_number": 0,
        "process.pid": 10,
        "thread.id": 10,
        "thread.name": "app",
        "process.executable.name": "app",
        "process.linux.cgroup": "/app.service",
    }


def test_a_process_whose_main_thread_was_not_sampled_has_no_executable_name(
    tables: Any, facts: Any
) -> None:
    data = decoded(tables, facts)
    (lost,) = [
        sample for sample in profile_of(data).samples if names(data, sample) == ["[stack lost]"]
    ]
    found = attributes(data, lost.attribute_indices)
    assert found["thread.name"] == "lost"
    assert "process.executable.name" not in found


def test_entry_0_of_every_dictionary_is_its_zero_value(tables: Any, facts: Any) -> None:
    dictionary = decoded(tables, facts).dictionary
    assert dictionary.string_table[0] == ""
    for name in ("mapping", "location", "function", "attribute", "stack"):
        assert not getattr(dictionary, f"{name}_table")[0].ListFields(), name
    assert dictionary.link_table[0].trace_id == bytes(16)


def test_frames_have_kind_mapping_and_build_id(tables: Any, facts: Any) -> None:
    data = decoded(tables, facts)
    (nameless,) = [location for location in data.dictionary.location_table if location.address]
    mapping = data.dictionary.mapping_table[nameless.mapping_index]
    assert nameless.address == 0x1F3A0
    assert data.dictionary.string_table[mapping.filename_strindex] == "/usr/lib/libfoo.so.1"
    assert str(
        attributes(data, mapping.attribute_indices)["process.executable.build_id.gnu"]
    ).startswith("abcdef01")
    kinds = {
        attributes(data, place.attribute_indices).get("profile.frame.type")
        for place in data.dictionary.location_table[1:]
    }
    assert kinds == {"kernel", "native", None}


def test_head_says_whose_when_and_what_was_left_out(tables: Any, facts: Any) -> None:
    data = decoded(tables, facts)
    profile = profile_of(data)
    host = data.resource_profiles[0].resource.attributes[0]
    assert (host.key, host.value.string_value) == ("host.name", "node-7")
    assert (profile.time_unix_nano, profile.duration_nano, profile.period) == (
        START_NS,
        100 * MS,
        10 * MS,
    )
    assert attributes(data, profile.attribute_indices) == {
        "necroscope.left_out": "2 s of samples: journal torn"
    }


def test_hostile_names_come_back_as_they_were(hostile: Any, facts: Any) -> None:
    data = decoded(hostile.tables, facts)
    deepest = max(profile_of(data).samples, key=lambda sample: len(names(data, sample)))
    assert names(data, deepest)[::-1] == hostile.texts


def test_an_older_schema_is_refused_and_the_error_names_the_extra(
    tables: Any, facts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("opentelemetry.proto.profiles.v1development.profiles_pb2.Stack")
    with pytest.raises(UsageError) as caught:
        write_otlp(tables, facts, io.BytesIO())
    assert "necroscope[otlp]" in caught.value.hint
