from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from necroscope.symbols.process_maps import Mapping, parse


def test_capture_gives_its_executable_mappings(data: Path) -> None:
    text = (data / "maps.txt").read_bytes()
    mappings = parse(text)
    assert len(mappings) == sum(b"xp " in line for line in text.splitlines())
    assert {"[vdso]"} < {mapping.path for mapping in mappings}
    assert all(mapping.start < mapping.end for mapping in mappings)


def test_fields_of_a_line() -> None:
    line = b"7f2a10028000-7f2a101bd000 r-xp 00028000 fe:01 1234                       /srv/a b/lib c.so (deleted)\n"
    assert parse(line) == [Mapping(0x7F2A10028000, 0x7F2A101BD000, 0x28000, 0xFE, 0x01, 1234, "/srv/a b/lib c.so (deleted)")]


def test_anonymous_code_has_no_path() -> None:
    assert parse(b"1000-2000 rwxp 00000000 00:00 0 \n")[0].path == ""


def test_path_that_is_no_utf8_can_be_opened_again() -> None:
    (mapping,) = parse(b"1000-2000 r-xp 00000000 00:01 5 /srv/\xff\\012x\n")
    assert mapping.path.encode("utf-8", "surrogateescape") == b"/srv/\xff\nx"


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | st.text("0123456789abcdef-:rxp /\n", max_size=200).map(str.encode))
def test_no_text_breaks_the_parser(text: bytes) -> None:
    parse(text)
