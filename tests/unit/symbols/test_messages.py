import pytest

from necroscope.symbols.messages import FrameError, FrameReader, pack


def test_messages_come_out_as_they_went_in_however_they_are_cut() -> None:
    messages = [(1, 2, ["a", None, "\udcff"]), (2, 3, []), (0, None)]
    stream = b"".join(pack(message) for message in messages)
    reader = FrameReader()
    assert [message for at in range(0, len(stream), 3) for message in reader.feed(stream[at : at + 3])] == messages


def test_frame_without_measure_is_refused() -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(b"\xff\xff\xff\xff")
