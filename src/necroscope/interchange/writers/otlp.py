"""OTLP profiles, schema v1development, one serialised ProfilesData message.

Schema: opentelemetry/proto/profiles/v1development/profiles.proto of
https://github.com/open-telemetry/opentelemetry-proto. Its classes come from the package
`opentelemetry-proto` (1.40 or newer: older ones ship a schema without a stack table), the extra
`otlp`. Samples of one stack, core and task are one Sample with all their timestamps. Attribute
names are OpenTelemetry's semantic conventions; `process.executable.name` is the main thread's comm
and absent where that was not sampled.
"""

from typing import Any, BinaryIO, Final

import numpy as np

from necroscope import __version__
from necroscope.errors import UsageError
from necroscope.interchange.writers.window import (
    UNKNOWN,
    SampleColumns,
    Strings,
    WindowFacts,
    columns_of,
)
from necroscope.model.frame import Frame
from necroscope.stacks.samples import SampleTables

_FRAME_TYPE: Final = {"kernel": "kernel", "user": "native"}
_ADDRESS_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF


def write_otlp(tables: SampleTables, facts: WindowFacts, out: BinaryIO) -> None:
    columns = columns_of(tables)
    classes = _profile_classes()
    dictionary = _Dictionary(classes)
    data = classes.ProfilesData()
    resource = data.resource_profiles.add()
    _set_text(resource.resource.attributes.add(), "host.name", facts.node)
    _set_text(resource.resource.attributes.add(), "os.type", "linux")
    scope = resource.scope_profiles.add()
    scope.scope.name, scope.scope.version = "necroscope", __version__
    profile = scope.profiles.add(
        time_unix_nano=facts.from_ns, duration_nano=facts.to_ns - facts.from_ns
    )
    profile.sample_type.type_strindex = dictionary.string("samples")
    profile.sample_type.unit_strindex = dictionary.string("count")
    profile.period_type.type_strindex = dictionary.string("cpu")
    profile.period_type.unit_strindex = dictionary.string("nanoseconds")
    profile.period = columns.period_ns(facts)
    if facts.left_out:
        profile.attribute_indices.append(
            dictionary.attribute("necroscope.left_out", "; ".join(facts.left_out))
        )
    _add_samples(profile, columns, dictionary)
    data.dictionary.CopyFrom(dictionary.message())
    out.write(data.SerializeToString(deterministic=True))


def _profile_classes() -> Any:
    # The extra `otlp`, which most do without.
    from opentelemetry.proto.profiles.v1development import profiles_pb2 as classes  # noqa: PLC0415

    if not hasattr(classes, "Stack"):
        raise UsageError(
            "the installed opentelemetry-proto ships an older profiles schema",
            "pip install --upgrade 'necroscope[otlp]'",
        )
    return classes


def _set_text(attribute: Any, key: str, text: str) -> None:
    attribute.key = key
    attribute.value.string_value = text


class _Dictionary:
    """The tables that everything else refers to by number; entry 0 of each is its zero value and
    stands for none.
    """

    def __init__(self, classes: Any) -> None:
        self._message = classes.ProfilesDictionary()
        for table in ("mapping", "location", "function", "attribute", "stack"):
            getattr(self._message, f"{table}_table").add()
        self._message.link_table.add(trace_id=bytes(16), span_id=bytes(8))
        self.string = Strings({"": 0})
        self._attributes: dict[tuple[str, str | int], int] = {}
        self._mappings: dict[tuple[str, str | None], int] = {}

    def message(self) -> Any:
        self._message.string_table.extend(self.string)
        return self._message

    def attribute(self, key: str, value: str | int) -> int:
        number = self._attributes.get((key, value))
        if number is None:
            number = self._attributes[key, value] = len(self._message.attribute_table)
            entry = self._message.attribute_table.add(key_strindex=self.string(key))
            if isinstance(value, str):
                entry.value.string_value = value
            else:
                entry.value.int_value = value
        return number

    def location(self, frame: Frame) -> int:
        function = self._message.function_table.add(name_strindex=self.string(frame.name))
        function.system_name_strindex = function.name_strindex
        number = len(self._message.location_table)
        location = self._message.location_table.add(mapping_index=self._mapping(frame))
        location.lines.add(function_index=len(self._message.function_table) - 1)
        if frame.offset is not None:
            location.address = frame.offset & _ADDRESS_MASK
        if frame.kind in _FRAME_TYPE:
            location.attribute_indices.append(
                self.attribute("profile.frame.type", _FRAME_TYPE[frame.kind])
            )
        return number

    def _mapping(self, frame: Frame) -> int:
        key = frame.module, frame.build_id
        number = self._mappings.get(key)
        if number is None:
            number = self._mappings[key] = len(self._message.mapping_table)
            mapping = self._message.mapping_table.add(filename_strindex=self.string(frame.module))
            if frame.build_id:
                mapping.attribute_indices.append(
                    self.attribute("process.executable.build_id.gnu", frame.build_id)
                )
        return number

    def stack(self, locations: list[int]) -> int:
        self._message.stack_table.add(location_indices=locations)
        return len(self._message.stack_table) - 1


def _add_samples(profile: Any, columns: SampleColumns, dictionary: _Dictionary) -> None:
    locations = [dictionary.location(frame) for frame in columns.frames]
    stacks = {
        stack: dictionary.stack([locations[frame] for frame in reversed(path)])
        for stack, path in columns.paths()
    }
    process_names = columns.process_names()
    keys = np.stack(
        [columns.stack, columns.cpu, columns.pid, columns.tid, columns.comm, columns.cgroup], axis=1
    )
    identities, place = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(place.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(place.ravel(), minlength=len(identities)))
    times, weights = columns.time_ns[order].tolist(), columns.weight[order].tolist()
    tasks: dict[tuple[int, ...], list[int]] = {}
    start = 0
    for (stack, *task), end in zip(identities.tolist(), ends.tolist(), strict=True):
        attributes = tasks.get(tuple(task))
        if attributes is None:
            attributes = tasks[tuple(task)] = _task_attributes(
                dictionary, columns, process_names, *task
            )
        profile.samples.add(
            stack_index=stacks[stack],
            attribute_indices=attributes,
            values=weights[start:end],
            timestamps_unix_nano=times[start:end],
        )
        start = end


def _task_attributes(
    dictionary: _Dictionary,
    columns: SampleColumns,
    process_names: dict[int, str],
    cpu: int,
    pid: int,
    tid: int,
    comm: int,
    cgroup: int,
) -> list[int]:
    numbers = {"cpu.logical_number": cpu, "process.pid": pid, "thread.id": tid}
    found: dict[str, str | int] = {
        key: number for key, number in numbers.items() if number != UNKNOWN
    }
    if comm != UNKNOWN:
        found["thread.name"] = columns.comms[comm]
    if pid in process_names:
        found["process.executable.name"] = process_names[pid]
    if cgroup != UNKNOWN:
        found["process.linux.cgroup"] = columns.cgroups[cgroup]
    return [dictionary.attribute(key, value) for key, value in found.items()]
