"""Who has the other end of a pipe or socket, asked of the live kernel."""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from necroscope.sources.perf.pipe_ends import READER, WRITER, PipeEnds, parse_ends


@contextmanager
def other_process(*kept: int) -> Iterator[int]:
    """A process that has only these descriptors, as long as this lasts."""
    wait, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        for descriptor in range(3, 64):
            if descriptor not in (*kept, wait):
                try:
                    os.close(descriptor)
                except OSError:
                    continue
        os.read(wait, 1)
        os._exit(0)
    os.close(wait)
    try:
        yield child
    finally:
        os.close(end)
        os.waitpid(child, 0)


def found(pid: int, descriptor: int, mode: int) -> list[int]:
    ends = PipeEnds(Path("/"))
    try:
        return [end.pid for end in ends.find(pid, descriptor, mode)]
    finally:
        ends.close()


@pytest.mark.root
@pytest.mark.kernel
def test_the_reader_and_the_writer_of_a_pipe_are_found() -> None:
    reads, writes = os.pipe()
    try:
        with other_process(reads) as child:
            assert found(os.getpid(), writes, READER) == [child]
            assert found(child, reads, WRITER) == [os.getpid()]
    finally:
        os.close(reads)
        os.close(writes)


@pytest.mark.root
@pytest.mark.kernel
def test_the_peer_of_a_unix_socket_is_found() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, other_process(theirs.fileno()) as child:
        theirs.close()
        assert found(os.getpid(), ours.fileno(), READER) == [child]


@pytest.mark.root
@pytest.mark.kernel
def test_what_is_neither_has_no_other_end(tmp_path: Path) -> None:
    with (
        open(tmp_path / "file", "w", encoding="utf-8") as file,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        assert found(os.getpid(), file.fileno(), READER) == []
        assert found(os.getpid(), listening.fileno(), READER) == []
        assert found(os.getpid(), 4096, READER) == []


def test_a_kernel_without_btf_has_no_answer(tmp_path: Path) -> None:
    assert PipeEnds(tmp_path).find(1, 0, READER) == []


def test_a_torn_answer_is_cut_and_names_are_cleaned() -> None:
    record = struct.pack("<Q16s", 71, b"back\x1bup\0rest")
    assert parse_ends(record + record[:9]) == [(71, "back\\x1bup")]
