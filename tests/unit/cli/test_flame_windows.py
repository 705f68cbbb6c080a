"""Words for times: what they mean in a recording, and what of a capture has to be imported for
them.
"""

import pytest

from necroscope.cli.flame_windows import Windows, WindowWords
from necroscope.errors import UsageError

NS = 1_000_000_000
START_NS = 1_790_000_000 * NS  # 2026-09-21T14:13:20Z
SPAN = START_NS, START_NS + 600 * NS


def at(seconds: float) -> int:
    return START_NS + int(seconds * NS)


@pytest.mark.parametrize(
    ("words", "window"),
    [
        (WindowWords(), (0, 600)),
        (WindowWords("2026-09-21T14:14:00Z", "2026-09-21T14:14:05.5Z"), (40, 45.5)),
        (WindowWords("2026-09-21T14:14:00", "2026-09-21T16:14:05+02:00"), (40, 45)),
        (WindowWords("-5m"), (300, 600)),
        (WindowWords(end="-5m"), (0, 300)),
        (WindowWords("-10s", "-5s"), (590, 595)),
        (WindowWords(at="2026-09-21T14:14:00Z"), (37.5, 42.5)),
        (WindowWords(at="-1m", around="10s"), (535, 545)),
    ],
)
def test_words_mean_a_window_of_the_recording(words, window):
    # An end that was not given takes in the last sample.
    assert words.within(SPAN) == Windows((at(window[0]), at(window[1]) + (window[1] == 600)), None)


def test_relative_times_count_from_the_end_of_the_recording_not_from_now():
    assert WindowWords("-1s").within(SPAN).window == (SPAN[1] - NS, SPAN[1] + 1)


def test_the_baseline_is_a_stretch_of_its_own():
    assert WindowWords("-5s", baseline="-60s..-30s").within(SPAN) == Windows(
        (at(595), at(600) + 1), (at(540), at(570))
    )
    assert WindowWords(baseline="2026-09-21T14:14:00Z..-30s").within(SPAN).baseline == (
        at(40),
        at(570),
    )


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (lambda: WindowWords("yesterday").within(SPAN), "'yesterday' is not a valid moment"),
        (lambda: WindowWords("-5x").within(SPAN), "'5x' is not a valid duration"),
        (lambda: WindowWords("-5s", "-10s").within(SPAN), "is empty"),
        (lambda: WindowWords("-5s", "-5s").within(SPAN), "is empty"),
        (lambda: WindowWords(at="-5s", around="0s").within(SPAN), "is empty"),
        (lambda: WindowWords(baseline="-5s").within(SPAN), "'-5s' is not a stretch"),
        (lambda: WindowWords(baseline="..-5s").within(SPAN), "is not a stretch"),
        (lambda: WindowWords(baseline="-5s..-9s").within(SPAN), "is empty"),
        (lambda: WindowWords("-5s", at="-5s"), "cannot be combined"),
        (lambda: WindowWords(around="5s"), "--around needs"),
    ],
)
def test_words_that_make_no_window_are_said_to_be_so(make, fact):
    with pytest.raises(UsageError, match=fact) as error:
        make()
    assert error.value.hint


def test_moments_out_of_this_world_stay_within_what_columns_hold():
    window = WindowWords("0001-01-01", "9999-12-31").within(SPAN).window
    assert window == (0, 1 << 62)
    assert WindowWords("-99999999d").within(SPAN).window[0] == 0


def test_of_a_capture_only_what_will_be_asked_for_is_imported():
    moment = "2026-09-21T14:14:00Z"
    assert WindowWords(moment, "2026-09-21T14:14:05Z").reach() == (at(40), at(45))
    assert WindowWords(moment).reach() == (at(40), None)
    assert WindowWords(at=moment, around="2s").reach() == (at(39), at(41))
    with_baseline = WindowWords(
        at=moment, around="2s", baseline="2026-09-21T14:13:30Z..2026-09-21T14:13:40Z"
    )
    assert with_baseline.reach() == (at(10), at(41))
    assert WindowWords(
        end=moment, baseline="2026-09-21T14:15:00Z..2026-09-21T14:15:01Z"
    ).reach() == (None, at(101))


def test_times_before_the_end_need_all_of_a_capture():
    assert WindowWords("-5s").reach() == (None, None)
    assert WindowWords(at="2026-09-21T14:14:00Z", baseline="-60s..-30s").reach() == (None, None)


def test_a_baseline_that_the_recording_holds_in_part_is_said_so():
    windows = WindowWords("-5s", baseline="2026-09-21T14:08:20Z..2026-09-21T14:14:20Z").within(SPAN)
    (said,) = windows.outside(SPAN)
    assert said == "of the baseline, which is 6 min long, the recording holds 1 min"


def test_a_baseline_outside_of_the_recording_is_an_error_with_its_span():
    windows = WindowWords("-5s", baseline="2026-09-20T14:00:00Z..2026-09-20T14:10:00Z").within(SPAN)
    with pytest.raises(UsageError, match=r"the baseline .* is not in the recording") as error:
        windows.outside(SPAN)
    assert "2026-09-21T14:13:20" in error.value.hint


def test_a_time_of_day_is_of_the_recordings_day():
    assert WindowWords("14:14", "14:15").within(SPAN).window == (at(40), at(100))
    assert WindowWords("14:14").reach() == (None, None)
