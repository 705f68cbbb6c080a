"""Record types and layouts, against the installed header."""

import re
from pathlib import Path

import pytest

from necroscope.perf_abi import records

HEADER = Path("/usr/include/linux/perf_event.h")


@pytest.mark.skipif(not HEADER.exists(), reason="no kernel headers here")
@pytest.mark.parametrize(
    "name",
    [
        "MMAP",
        "LOST",
        "COMM",
        "EXIT",
        "THROTTLE",
        "UNTHROTTLE",
        "FORK",
        "SAMPLE",
        "MMAP2",
        "KSYMBOL",
    ],
)
def test_record_types_agree_with_the_installed_header(name: str) -> None:
    found = re.search(rf"PERF_RECORD_{name}\s*=\s*(\d+),", HEADER.read_text())
    assert found is not None
    assert getattr(records, name) == int(found[1])


def test_bodies_have_the_sizes_of_the_headers_comments() -> None:
    assert records.HEADER.size == 8
    assert records.LOST_BODY.size == 2 * 8
    assert records.KSYMBOL_BODY.size == 8 + 4 + 2 + 2
