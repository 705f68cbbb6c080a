"""Names are the same whether they are found here or by a process of its own, and that process may end at any time."""

import os
import signal
import threading
from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.interchange.perf_data.frame_names import FrameNames, Module, Question
from necroscope.interchange.perf_data.kernel_names import KernelNames
from necroscope.interchange.perf_data.naming import Answer, Naming
from necroscope.interchange.perf_data.symbol_files import SymbolFiles
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.model.frame import UNKNOWN_USER

pytestmark = pytest.mark.one_thread
KALLSYMS = b"ffffffff81000000 T first\nffffffff81000100 T second\nffffffff81000200 D data\n"
LARGE = 1 << 30
ENTRY = Question([0xFFFFFFFF81000010, 0xFFFFFFFF81000110], [(Module("", None, -1), [1, 2])], [], [])


@pytest.fixture
def names(tmp_path: Path) -> FrameNames:
    kallsyms = tmp_path / "kallsyms"
    kallsyms.write_bytes(KALLSYMS)
    return names_by(kallsyms)


def names_by(kallsyms: Path) -> FrameNames:
    search = SymbolSearch(kallsyms, build_id_cache=None)
    return FrameNames(KernelNames(search, None, is_same_machine=False), SymbolFiles(search, is_same_machine=False))


def functions(answer: Answer) -> list[str | None]:
    return [answer.different[place].function for place in answer.places]


def asked_twice(naming: Naming) -> list[list[str | None]]:
    """The second is asked before the first is answered, as the reader does."""
    naming.ask(ENTRY)
    naming.ask(Question([0xFFFFFFFF81000150], [], [], []))
    found = [functions(naming.answer()), functions(naming.answer())]
    naming.close()
    return found


def test_a_process_answers_as_this_one_does(names: FrameNames) -> None:
    here, beside = Naming(names), Naming(names)
    beside.start_process([], LARGE)
    assert beside.process is not None
    assert asked_twice(here) == asked_twice(beside) == [["first", "second", None, None], ["second"]]


def test_what_is_not_mapped_has_no_name(names: FrameNames) -> None:
    assert names.frames(ENTRY)[2:] == [UNKNOWN_USER, UNKNOWN_USER]


def test_process_that_was_killed_leaves_its_questions(names: FrameNames) -> None:
    naming = Naming(names)
    naming.start_process([], LARGE)
    assert naming.process is not None
    os.kill(naming.process.pid, signal.SIGKILL)
    assert asked_twice(naming) == [["first", "second", None, None], ["second"]]


def test_error_of_the_process_is_raised_here(tmp_path: Path) -> None:
    empty = tmp_path / "kallsyms"
    empty.write_bytes(b"nothing\n")
    naming = Naming(names_by(empty))
    naming.start_process([], LARGE)
    naming.ask(ENTRY)
    with pytest.raises(UsageError, match="holds no kernel function"):
        naming.answer()
    naming.close()


def test_process_ends_with_the_last_question(names: FrameNames) -> None:
    naming = Naming(names)
    naming.start_process([], LARGE)
    assert naming.process is not None
    pid = naming.process.pid
    naming.close()
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("size_bytes", [1000, LARGE])
def test_no_process_for_a_small_capture_or_beside_threads(names: FrameNames, size_bytes: int) -> None:
    naming = Naming(names)
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait)
    if size_bytes == LARGE:
        thread.start()
    naming.start_process([], size_bytes)
    assert naming.process is None
    is_over.set()
    if size_bytes == LARGE:
        thread.join()
