"""What a node may send, and what it is answered when it may not."""

import gzip
import json
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fleet_batches import START_NS, made_batch

from necroscope.fleet.lake_tables import DAY_NS, JSON_LIMIT
from necroscope.fleet.limits import Limits
from necroscope.fleet.protocol import BadBatch, Batch, TooLarge, decode, encode


def content(**changes: Any) -> dict[str, Any]:
    return {**json.loads(gzip.decompress(encode(made_batch()))), **changes}


def packed(value: Any) -> bytes:
    return gzip.compress(json.dumps(value).encode())


def with_event(**columns: Any) -> bytes:
    events = content()["tables"]["events"] | columns
    return packed(content(tables={"events": events}))


def test_what_is_encoded_is_decoded() -> None:
    batch = made_batch(
        labels={"zone": "a"},
        facts={"time": [START_NS], "kind": ["sysctl"], "name": ["vm.swappiness"], "value": [None]},
    )
    assert decode(encode(batch)) == batch


def test_a_newer_node_s_tables_and_columns_are_left_out_and_named() -> None:
    events = content()["tables"]["events"] | {"mood": ["bad"]}
    batch = decode(packed(content(tables={"events": events, "dreams": {"anything": 1}})))
    assert batch.ignored == ("dreams", "events.mood")
    assert "mood" not in batch.tables["events"]


def test_an_older_node_s_missing_columns_are_no_error_where_they_may_be_null() -> None:
    events = {
        name: column for name, column in content()["tables"]["events"].items() if name != "message"
    }
    assert decode(packed(content(tables={"events": events}))).rows == 1


def test_a_column_that_every_row_needs_must_be_there() -> None:
    with pytest.raises(BadBatch, match="events has no column kind"):
        decode(
            packed(content(tables={"events": {"time": [], "boot_id": [], "source_sequence": []}}))
        )


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_protocol_is_refused(version: Any) -> None:
    with pytest.raises(BadBatch, match="speaks protocol 1"):
        decode(packed(content(protocol=version)))


@pytest.mark.parametrize(
    "columns",
    [
        {"kind": [7]},
        {"kind": [None]},
        {"kind": [["nic_reset"]]},
        {"cpu": [1.5]},
        {"cpu": [True]},
        {"cpu": ["1"]},
        {"cpu": [40_000]},
        {"source_sequence": [1 << 64]},
        {"by_kernel": [1]},
        {"time": [None]},
        {"time": [0]},
        {"time": [1 << 62]},
        {"time": []},
        {"message": ["a", "b"]},
        {"message": "text"},
    ],
)
def test_values_of_another_type_size_or_number_are_refused(columns: dict[str, Any]) -> None:
    with pytest.raises(BadBatch) as caught:
        decode(with_event(**columns))
    assert caught.value.hint


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "1e300"])
def test_a_share_without_end_is_refused(number: str) -> None:
    cores = f'{{"time": [{START_NS}], "cpu": [0], "ticks": [60], "user": [{number}]}}'
    text = json.dumps(content(tables={})).replace(
        '"tables": {}', f'"tables": {{"core_minutes": {cores}}}'
    )
    with pytest.raises(BadBatch):
        decode(gzip.compress(text.encode()))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"garbage",
        gzip.compress(b""),
        gzip.compress(b"\xff\xfe"),
        gzip.compress(b"[" * 100_000),
        gzip.compress(b"9" * 10_000),
        packed([]),
        packed({}),
        encode(made_batch())[:-9],
        encode(made_batch()) + b"more",
        packed(content(tables=[])),
        packed(content(tables={"events": []})),
        packed(content(tables={"events": {"time": 5}})),
    ],
)
def test_garbage_is_refused_with_a_way_out(body: bytes) -> None:
    with pytest.raises(BadBatch) as caught:
        decode(body)
    assert caught.value.facts
    assert caught.value.hint


@given(st.binary(max_size=200))
def test_no_bytes_whatever_raise_anything_else(body: bytes) -> None:
    for sent in (body, gzip.compress(body)):
        with pytest.raises(BadBatch):
            decode(sent)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["time", "kind", "events", "x"]), inner)
        ),
    )
)
def test_no_json_whatever_raises_anything_else(value: Any) -> None:
    for sent in (content(tables=value), content(labels=value), content(tables={"events": value})):
        try:
            decode(packed(sent))
        except (BadBatch, TooLarge):
            continue


def test_a_zip_bomb_is_refused_before_it_is_inflated() -> None:
    bomb = gzip.compress(b" " * (64 << 20))
    assert len(bomb) < 100_000
    tracemalloc.start()
    with pytest.raises(TooLarge, match="larger than 1,000,000 bytes"):
        decode(bomb, Limits(inflated_bytes=1_000_000))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 8 << 20


def test_a_million_labels_are_refused() -> None:
    many = b",".join(b'"%d":""' % number for number in range(1_000_000))
    with pytest.raises(TooLarge, match="more than 400,000 values"):
        decode(gzip.compress(b'{"labels":{' + many + b"}}", 1))
    with pytest.raises(BadBatch, match="65 labels are more than 64"):
        decode(encode(made_batch(labels={str(number): "" for number in range(65)})))


@pytest.mark.parametrize("mark", [b"[],", b"1,", b"{},"])
def test_what_would_take_long_to_parse_is_refused_before(mark: bytes) -> None:
    with pytest.raises(TooLarge, match="more than 1,000 values"):
        decode(gzip.compress(b"[" + mark * 1000 + b"0]"), Limits(marks=1000))


@pytest.mark.parametrize(
    "labels",
    [{"": "a"}, {"zone": "x" * 129}, {"z" * 129: "x"}, {"zone": 1}, {"zone": "ü" * 65}, ["zone"]],
)
def test_labels_are_short_texts_with_names(labels: Any) -> None:
    with pytest.raises(BadBatch):
        decode(packed(content(labels=labels)))


def test_more_rows_or_days_than_allowed_ask_for_smaller_batches() -> None:
    batch = made_batch()
    with pytest.raises(TooLarge, match="2 rows"):
        decode(encode(batch), Limits(rows=1))
    days = [START_NS + day * 86_400 * 10**9 for day in range(3)]
    facts = {"time": days, "kind": ["k"] * 3, "name": ["n"] * 3}
    with pytest.raises(TooLarge, match="rows of 3 days"):
        decode(encode(made_batch(facts=facts)), Limits(days=2))


@pytest.mark.parametrize(
    "name", ["", "../../etc", "a/b", "a b", ".hidden", "x" * 129, None, 5, "a\n", "ü"]
)
def test_names_that_would_steer_a_path_are_refused(name: Any) -> None:
    with pytest.raises(BadBatch, match="node is not a valid name"):
        decode(packed(content(node=name)))


def incident(**changes: Any) -> Batch:
    row = {
        "time": START_NS,
        "end": START_NS,
        "id": "i",
        "cause": "unknown",
        "confidence": 0.5,
        "report": "{}",
        "analysed_by": "1",
        "analysed_ns": START_NS,
        **changes,
    }
    return replace(
        made_batch(), tables={"incidents": {name: [value] for name, value in row.items()}}
    )


def test_reports_are_json_and_are_written_anew_in_ascii() -> None:
    text = json.dumps({"title": "a\u202eb"}, ensure_ascii=False)
    assert decode(encode(incident(report=text))).tables["incidents"]["report"] == [
        '{"title": "a\\u202eb"}'
    ]
    assert decode(encode(incident())).tables["incidents"]["events"] == [None]


def test_a_report_that_is_no_json_or_endless_is_refused() -> None:
    with pytest.raises(BadBatch, match=r"incidents\.report is not valid JSON"):
        decode(encode(incident(report="{")))
    with pytest.raises(TooLarge):
        decode(encode(incident(report='"' + "x" * JSON_LIMIT + '"')))


@pytest.mark.parametrize(
    "text",
    [
        '"\\ud800"',
        '{"\\udc00": 1}',
        "1e999",
        "[-1e999]",
        "[" * 33 + "]" * 33,
        '{"a":' * 33 + "1" + "}" * 33,
    ],
)
def test_a_report_that_no_reader_could_be_sent_is_refused(text: str) -> None:
    with pytest.raises(BadBatch, match="report"):
        decode(encode(incident(report=text)))


def test_a_report_of_usual_depth_with_any_letters_is_taken() -> None:
    text = json.dumps(
        {"deep": json.loads("[" * 20 + "1" + "]" * 20), "letters": "ü\N{PILE OF POO}"}
    )
    [written] = decode(encode(incident(report=text))).tables["incidents"]["report"]
    assert written.isascii()
    assert json.loads(written) == json.loads(text)


@pytest.mark.parametrize("events", ["5", '"text"', "{}", "[1]", '[["nested"]]', "[null]", "null"])
def test_the_events_of_an_incident_are_texts(events: str) -> None:
    with pytest.raises(BadBatch, match="list of texts"):
        decode(encode(incident(events=events)))
    assert decode(encode(incident(events='["nic_reset"]'))).tables["incidents"]["events"] == [
        '["nic_reset"]'
    ]


def test_more_incidents_or_names_of_labels_than_allowed_are_refused() -> None:
    one = incident().tables["incidents"]
    many = made_batch(incidents={name: column * 257 for name, column in one.items()})
    with pytest.raises(TooLarge, match="257 incidents"):
        decode(encode(many))
    names = [f"l{number}" for number in range(257)]
    facts = {"time": [START_NS] * 257, "kind": ["label"] * 257, "name": names}
    with pytest.raises(TooLarge, match="257 labels"):
        decode(encode(made_batch(facts=facts)))
    assert decode(encode(made_batch(facts=facts | {"kind": ["sysctl"] * 257}))).rows == 259


def test_a_clock_may_be_a_day_ahead_and_not_a_year() -> None:
    batch = made_batch()
    assert decode(encode(batch), now_ns=START_NS - DAY_NS) == batch
    assert decode(encode(batch), now_ns=START_NS + 3650 * DAY_NS) == batch
    with pytest.raises(BadBatch, match=r"2025-10-09.* more than 2 days ahead"):
        decode(encode(batch), now_ns=START_NS - 3 * DAY_NS)
    pulse = batch.tables["pulses"] | {"span_to": [START_NS + 5 * DAY_NS]}
    with pytest.raises(BadBatch, match=r"pulses\.span_to"):
        decode(encode(made_batch(pulses=pulse)), now_ns=START_NS)


@pytest.mark.parametrize("moment", [-1, -(1 << 63), 1 << 62])
def test_what_was_observed_has_moments(moment: int) -> None:
    for name in ("span_from", "span_to"):
        with pytest.raises(BadBatch, match=name):
            decode(encode(made_batch(pulses=made_batch().tables["pulses"] | {name: [moment]})))
