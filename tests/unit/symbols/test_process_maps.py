import os
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from necroscope.symbols import process_maps
from necroscope.symbols.process_maps import Mapping, parse, read


def test_capture_gives_its_executable_mappings(data: Path) -> None:
    text = (data / "maps.txt").read_bytes()
    mappings = parse(text)
    assert len(mappings) == sum(b"xp " in line for line in text.splitlines())
    assert {"[vdso]"} < {mapping.path for mapping in mappings}
    assert all(mapping.start < mapping.end for mapping in mappings)


def test_fields_of_a_line() -> None:
    line = (
        b"7f2a10028000-7f2a101bd000 r-xp 00028000 fe:01 1234                       /srv/a b/lib"
        b" c.so (deleted)\n"
    )
    assert parse(line) == [
        Mapping(
            0x7F2A10028000, 0x7F2A101BD000, 0x28000, 0xFE, 0x01, 1234, "/srv/a b/lib c.so (deleted)"
        )
    ]


def test_anonymous_code_has_no_path() -> None:
    assert parse(b"1000-2000 rwxp 00000000 00:00 0 \n")[0].path == ""


def test_path_that_is_no_utf8_can_be_opened_again() -> None:
    (mapping,) = parse(b"1000-2000 r-xp 00000000 00:01 5 /srv/\xff\\012x\n")
    assert mapping.path.encode("utf-8", "surrogateescape") == b"/srv/\xff\nx"


def test_file_gives_what_its_whole_text_gives(data: Path) -> None:
    expected = parse((data / "maps.txt").read_bytes())
    assert read(data / "maps.txt", len(expected)) == (expected, False)
    assert read(data / "maps.txt", len(expected) - 1) == (expected[:-1], True)


def test_mappings_of_a_process_that_is_gone_are_unknown(tmp_path: Path) -> None:
    assert read(tmp_path / "maps", 10) is None


def line(number: int, permissions: bytes = b"r-xp") -> bytes:
    return b"%x000-%x000 %s 00000000 00:00 0 \n" % (number, number + 1, permissions)


def test_lines_are_whole_however_the_kernel_hands_them_out(tmp_path: Path) -> None:
    text = b"".join(line(number) for number in range(1, 40))
    os.mkfifo(tmp_path / "maps")

    def write() -> None:
        with (tmp_path / "maps").open("wb", buffering=0) as file:
            for at in range(0, len(text), 7):
                file.write(text[at : at + 7])

    writer = Thread(target=write)
    writer.start()
    assert read(tmp_path / "maps", 100) == (parse(text), False)
    writer.join()


def test_no_more_is_read_than_is_kept(tmp_path: Path) -> None:
    """The kernel writes a line when it is read: of a million few are."""
    os.mkfifo(tmp_path / "maps")
    written = 0

    def write() -> None:
        nonlocal written
        try:
            with (tmp_path / "maps").open("wb", buffering=0) as file:
                for number in range(1, 1_000_000, 100):
                    written += file.write(b"".join(line(number + beside) for beside in range(100)))
        except BrokenPipeError:
            pass

    writer = Thread(target=write)
    writer.start()
    found = read(tmp_path / "maps", 4096)
    writer.join()
    assert found is not None
    assert (len(found[0]), found[0][-1].start, found[1]) == (4096, 4096 << 12, True)
    assert written < 1 << 20, "of 40 MB, what fits into the pipe and two reads"


def test_a_million_mappings_without_code_are_read_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_maps, "_READ_LIMIT_BYTES", 1 << 17)
    text = line(1) + b"".join(line(number, b"rw-p") for number in range(2, 20_000)) + line(20_000)
    (tmp_path / "maps").write_bytes(text)
    assert read(tmp_path / "maps", 4096) == (parse(line(1)), True)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | st.text("0123456789abcdef-:rxp /\n", max_size=200).map(str.encode))
def test_no_text_breaks_the_parser(text: bytes) -> None:
    parse(text)
