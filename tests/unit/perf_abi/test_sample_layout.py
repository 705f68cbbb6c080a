"""Places of fields, against the order that include/uapi/linux/perf_event.h prescribes."""

from necroscope.perf_abi.event_attr import SAMPLE_CPU, SAMPLE_ID, SAMPLE_IDENTIFIER, SAMPLE_IP, SAMPLE_TID, SAMPLE_TIME
from necroscope.perf_abi.sample_layout import FORMAT_GROUP, FORMAT_ID, FORMAT_LOST, SAMPLE_PERIOD, SampleLayout


def test_fields_follow_each_other_behind_the_header() -> None:
    layout = SampleLayout(SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ID | SAMPLE_CPU | SAMPLE_PERIOD)
    fields = (SAMPLE_IP, SAMPLE_TID, SAMPLE_TIME, SAMPLE_ID, SAMPLE_CPU, SAMPLE_PERIOD)
    assert [layout.position(field) for field in fields] == [1, 2, 3, 4, 5, 6]
    assert layout.head_words == 7
    assert layout.position(SAMPLE_IDENTIFIER) is None


def test_identifier_comes_first_in_samples_and_last_in_trailers() -> None:
    layout = SampleLayout(SAMPLE_IDENTIFIER | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU)
    assert layout.id_position == 1
    assert layout.words_before_end(SAMPLE_IDENTIFIER) == 1
    assert layout.words_before_end(SAMPLE_CPU) == 2
    assert layout.words_before_end(SAMPLE_TIME) == 3


def test_group_reads_grow_with_the_group() -> None:
    assert SampleLayout(0, FORMAT_ID | FORMAT_LOST).read_words == (3, 0)
    assert SampleLayout(0, FORMAT_GROUP | FORMAT_ID | FORMAT_LOST).read_words == (1, 3)
