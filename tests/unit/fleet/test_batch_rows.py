"""Rows as the lake has them."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fleet_batches import NS, START_NS, made_batch

from necroscope.fleet.batch_rows import rows_of
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.protocol import BadBatch, Columns, decode, encode

DAY_NS = 86_400 * NS


def test_rows_get_their_cluster_and_node() -> None:
    rows = rows_of(made_batch("n1"), "eu-1", START_NS, None)["events"]
    assert rows.schema.equals(LAKE_TABLES["events"])
    assert rows.select(["cluster", "node", "kind", "device"]).to_pylist() == [
        {"cluster": "eu-1", "node": "n1", "kind": "nic_reset", "device": None}
    ]


def test_a_row_cannot_say_that_it_is_another_node_s() -> None:
    batch = made_batch("n1")
    batch.tables["events"] |= {"node": ["n2"], "cluster": ["theirs"]}
    received = decode(encode(batch))
    assert received.ignored == ("events.cluster", "events.node")
    assert rows_of(received, "eu-1", START_NS, None)["events"]["node"].to_pylist() == ["n1"]


def test_a_clock_that_is_a_day_off_is_reported_in_the_pulse() -> None:
    batch = made_batch()
    pulses = rows_of(batch, "c", batch.sent_ns + DAY_NS, None)["pulses"]
    assert pulses["clock_offset_ns"].to_pylist() == [DAY_NS]


def test_the_clock_at_sending_counts_and_not_the_time_in_the_spool() -> None:
    batch = made_batch()
    pulses = rows_of(batch, "c", batch.sent_ns + DAY_NS, batch.sent_ns + DAY_NS - 7)["pulses"]
    assert pulses["clock_offset_ns"].to_pylist() == [7]


def test_a_clock_that_the_node_measured_comes_with_its_error() -> None:
    batch, two_s = made_batch(), 2 * NS
    rows = rows_of(batch, "c", batch.sent_ns + two_s + NS, batch.sent_ns, (two_s, 5))["pulses"]
    assert (rows["clock_offset_ns"][0].as_py(), rows["clock_error_ns"][0].as_py()) == (two_s, 5)


def test_a_clock_that_was_set_since_it_was_measured_is_not_believed() -> None:
    batch = made_batch()
    rows = rows_of(batch, "c", batch.sent_ns + 60 * NS, batch.sent_ns, (2 * NS, 5))["pulses"]
    assert rows["clock_offset_ns"].to_pylist() == [60 * NS]
    assert rows["clock_error_ns"].to_pylist() == [None]


def test_a_node_cannot_tell_its_own_offset() -> None:
    batch = made_batch()
    batch.tables["pulses"]["clock_offset_ns"] = [5]
    assert rows_of(decode(encode(batch)), "c", batch.sent_ns, None)["pulses"][
        "clock_offset_ns"
    ].to_pylist() == [0]


def test_labels_become_facts_of_the_span_that_the_batch_speaks_for() -> None:
    batch = replace(made_batch(labels={"zone": "a"}), sent_ns=START_NS + DAY_NS)
    assert rows_of(batch, "c", 0, None)["facts"].select(
        ["time", "kind", "name", "value"]
    ).to_pylist() == [{"time": START_NS, "kind": "label", "name": "zone", "value": "a"}]


def test_labels_stand_beside_the_facts_that_were_sent() -> None:
    facts = {"time": [START_NS], "kind": ["sysctl"], "name": ["kernel.pid_max"]}
    found = rows_of(made_batch(labels={"zone": "a"}, facts=facts), "c", 0, None)["facts"]
    assert found.select(["name", "value"]).to_pylist() == [
        {"name": "kernel.pid_max", "value": None},
        {"name": "zone", "value": "a"},
    ]


def test_texts_that_would_steer_a_terminal_or_never_end_are_made_harmless() -> None:
    batch = made_batch()
    batch.tables["events"] |= {"message": ["\x1b[2J" + "x" * 10_000], "comm": ["\ud800"]}
    row = rows_of(batch, "c", 0, None)["events"].to_pylist()[0]
    assert row["message"].startswith("\\x1b[2J")
    assert len(row["message"]) == 4096
    assert row["comm"] == "\\ud800"


def test_a_table_without_rows_is_not_there() -> None:
    assert "gaps" not in rows_of(
        made_batch(gaps={"time": [], "end": [], "table": [], "cause": []}), "c", 0, None
    )


VALUES = {
    "string": st.text() | st.sampled_from(["", "\ud800", "\x00", "{}", "null"]),
    "bool": st.booleans(),
    "float": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(1 << 70), 1 << 70),
    "double": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(1 << 70), 1 << 70),
    **{
        f"int{bits}": st.integers(-(1 << bits), 1 << bits) | st.integers(0, 5)
        for bits in (16, 32, 64)
    },
}


@st.composite
def made_tables(draw: st.DrawFn) -> dict[str, Columns]:
    """Tables with values of the right kind, but of any size, and with null anywhere."""
    tables = {}
    for name in draw(st.sets(st.sampled_from(sorted(LAKE_TABLES)), min_size=1, max_size=2)):
        count = draw(st.integers(0, 2))
        columns = {field.name: VALUES[str(field.type)] for field in LAKE_TABLES[name]} | {
            "time": st.just(START_NS)
        }
        maybe = draw(st.booleans())
        tables[name] = {
            column: draw(
                st.lists(value | st.none() if maybe else value, min_size=count, max_size=count)
            )
            for column, value in columns.items()
        }
    return tables


@settings(deadline=None, max_examples=50)
@given(made_tables())
def test_whatever_is_accepted_can_be_stored(tables: dict[str, Columns]) -> None:
    try:
        batch = decode(encode(replace(made_batch(), tables=tables)))
    except BadBatch:
        return
    rows = rows_of(batch, "eu-1", START_NS, None)
    counts = {name: len(columns["time"]) for name, columns in tables.items()}
    assert {name: len(table) for name, table in rows.items()} == {
        name: count for name, count in counts.items() if count
    }
    for table in rows.values():
        table.validate(full=True)
