import os
import subprocess
import sys

import pytest

from necroscope.symbols.messages import READY, FrameReader, Kind, pack

COMMAND = [sys.executable, "-m", "necroscope.symbols.lookup_process"]


def converse(content: bytes, root: object = "/") -> list[tuple[object, ...]]:
    result = subprocess.run([*COMMAND, str(root)], input=content, capture_output=True, check=True, timeout=30)
    assert result.stderr == b""
    return FrameReader().feed(result.stdout)


@pytest.mark.kernel
def test_process_says_ready_answers_in_order_and_ends_with_its_input() -> None:
    messages = converse(pack((7, int(Kind.MAPS), [(os.getpid(),), (1 << 22,)])) + pack((8, int(Kind.VDSO), [[0]])))
    assert [message[0] for message in messages] == [READY, 7, 7, 8]
    assert messages[1][1]
    assert messages[2][1] is None


def test_item_that_makes_a_handler_fail_is_unknown_and_the_next_is_answered(tmp_path: object) -> None:
    items = [("no pid",), None, (1 << 80,)]
    answers = converse(pack((1, int(Kind.MAPS), items)) + pack((2, int(Kind.VDSO), [[1 << 40]])), tmp_path)
    assert [answer[1] for answer in answers[1:]] == [None, None, None, [None]]


def test_frame_without_measure_ends_it(tmp_path: object) -> None:
    assert len(converse(b"\xff" * 8, tmp_path)) == 1
