"""Makes the recording of the current schema version that is kept here: `python tests/data/formats/make.py` writes vN beside it.

Run it once when the schema version is raised, before the first release of that version; never for an old one.
"""

from pathlib import Path

from necroscope.model.reading import Gap, Rows, Value
from necroscope.model.tables import SCHEMA_VERSION, TABLES, Column, Type
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import Identity, Pin, make_recording, new_segment_path, write_pins
from necroscope.segment.seal_writer import seal

START_NS = 1_760_000_000_000_000_000
NS = 1_000_000_000


def value(column: Column, number: int) -> Value:
    """Something of the column's type; every second nullable value is null."""
    if column.nullable and number % 2:
        return None
    values: dict[Type, Value] = {
        Type.BOOL: number % 2 == 0,
        Type.UTF8: f"line {number // 2} é",
        Type.CATEGORY: f"{column.name} {number % 2}",
        Type.INT32_LIST: [number, number + 1],
    }
    return values.get(column.type, number)


def rows_of(name: str, segment: int) -> Rows:
    start_ns = START_NS + segment * 10 * NS
    if name == "frames":
        return [
            (0, "start", "[kernel]", "kernel", None, None),
            (1, None, "/bin/x", "user", 77, "ab"),
        ]
    if name == "stacks":
        return [(0, -1, 0), (1, 0, 1)] if segment % 2 == 0 else [(0, -1, 1), (1, -1, 0), (2, 1, 1)]
    if name == "samples":
        stack = 2 if segment == 1 else 1
        return [
            (start_ns + i * NS, i % 2, 7, 8, "work", None if i % 2 else "/a", stack, 1)
            for i in range(4)
        ]
    if name == "gaps":
        return [Gap("samples", start_ns, start_ns + 5, "ring overran", 1, 3).row()]
    columns = TABLES[name].columns[1:]
    return [
        (start_ns + i * NS, *(value(column, 2 * segment + i) for column in columns))
        for i in range(2)
    ]


def main() -> None:
    directory = Path(__file__).parent / f"v{SCHEMA_VERSION}"
    make_recording(directory, Identity("node-a", "boot-1", "necroscope", {"zone": "a"}))
    write_pins(directory, [Pin(START_NS, START_NS + 5 * NS, "nic_reset")])
    for segment in range(3):
        start_ns = START_NS + segment * 10 * NS
        live = new_segment_path(directory, start_ns)
        writer = JournalWriter(
            live, SegmentHeader(live.name.removesuffix(".live"), "node-a", "boot-1", start_ns, 2)
        )
        # The second segment has only what is needed to merge its stacks, so that the whole stays small.
        for name in TABLES if segment != 1 else ("frames", "stacks", "samples", "gaps", "log"):
            writer.append(name, rows_of(name, segment))
        writer.idle_samples = 10
        writer.close()
        if segment < 2:
            seal(live)


if __name__ == "__main__":
    main()
