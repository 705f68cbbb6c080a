import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.synthetic_root import put_into_a_cgroup_namespace, write_files

from necroscope.symbols import lookup_process
from necroscope.symbols.messages import READY, FrameReader, RequestKind, TaskDescription, pack

COMMAND = [sys.executable, "-m", "necroscope.symbols.lookup_process"]


def converse(content: bytes, root: object = "/") -> list[tuple[Any, ...]]:
    result = subprocess.run(
        [*COMMAND, str(root)], input=content, capture_output=True, check=True, timeout=30
    )
    assert result.stderr == b""
    return FrameReader().feed(result.stdout)


@pytest.mark.kernel
def test_process_says_ready_answers_in_order_and_ends_with_its_input() -> None:
    messages = converse(
        pack((7, int(RequestKind.MAPS), [(os.getpid(),), (1 << 22,)]))
        + pack((8, int(RequestKind.DEMANGLE), [["plain"]]))
    )
    assert [message[0] for message in messages] == [READY, 7, 7, 8]
    mappings, is_bounded = messages[1][1]
    assert mappings
    assert is_bounded is False
    assert messages[2][1] is None
    assert messages[3][1] == ["plain"]


def test_item_that_makes_a_handler_fail_is_unknown_and_the_next_is_answered(
    tmp_path: object,
) -> None:
    items = [("no pid",), None, (1 << 80,)]
    answers = converse(
        pack((1, int(RequestKind.MAPS), items)) + pack((2, int(RequestKind.JIT), [(7, [1 << 40])])),
        tmp_path,
    )
    assert [answer[1] for answer in answers[1:]] == [None, None, None, [None]]


def test_task_is_reported_with_the_nodes_path_also_from_within_a_cgroup_namespace(
    tmp_path: Path,
) -> None:
    put_into_a_cgroup_namespace(tmp_path)
    write_files(tmp_path, {"proc/5/task/5/cgroup": "0::/../other\n"})
    _, (_, answer) = converse(pack((1, int(RequestKind.TASK), [(5, 5, None)])), tmp_path)
    assert TaskDescription(*answer).cgroup == "/pods/other"


def test_frame_without_measure_ends_it(tmp_path: object) -> None:
    assert len(converse(b"\xff" * 8, tmp_path)) == 1


def test_process_that_is_out_of_memory_ends_with_its_caches() -> None:
    def fail(item: object) -> object:
        raise MemoryError

    requests, answers = os.pipe()
    try:
        os.write(answers, pack((1, int(RequestKind.JIT), [(7, [1])])))
        with pytest.raises(MemoryError):
            lookup_process.serve(requests, answers, {RequestKind.JIT: fail})
    finally:
        os.close(requests)
        os.close(answers)


@pytest.mark.kernel
def test_process_takes_no_more_memory_than_its_share() -> None:
    process = subprocess.Popen([*COMMAND, "/"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin, process.stdout as stdout:
        assert stdout.read(1), "it is ready"
        assert (
            resource.prlimit(process.pid, resource.RLIMIT_DATA)[0]
            <= lookup_process._DATA_LIMIT_BYTES
        )


def test_an_item_that_takes_its_cpu_time_is_unknown_and_the_next_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def handler(item: object) -> object:
        while item == "endless":
            pass
        return item

    monkeypatch.setattr(lookup_process, "_CPU_S", 0.05)
    before = signal.signal(signal.SIGPROF, lookup_process._stop_item)
    try:
        answers = [lookup_process._answer(handler, item) for item in ("endless", "quick")]
    finally:
        signal.signal(signal.SIGPROF, before)
    assert answers == [None, "quick"]
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_lookup_process_imports_neither_numpy_nor_what_needs_it() -> None:
    code = (
        "import sys; import necroscope.symbols.lookup_process;"
        "print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'pyarrow', 'click')])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_recorders_side_imports_the_standard_library_only() -> None:
    code = (
        "import sys; import necroscope.symbols.lookup;print([m for m in sys.modules if"
        " m.split('.')[0] in ('numpy', 'cxxfilt', 'rust_demangler')])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
