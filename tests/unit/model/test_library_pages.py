"""Which pages of libraries are given back: those that can be read again from their file, and only
those.
"""

import subprocess
import sys

from necroscope.model.library_pages import clean_stretches, release_library_pages

SMAPS = """
00400000-00500000 r-xp 00000000 08:01 10 /usr/bin/python3
Rss:                 900 kB
Anonymous:             0 kB
7f0000000000-7f0000100000 r--p 00000000 08:01 11 /opt/a path/libarrow.so.2600
Rss:                 900 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
7f0000100000-7f0000200000 r-xp 00100000 08:01 11 /opt/a path/libarrow.so.2600
Anonymous:             0 kB
7f0000200000-7f0000300000 r--p 00200000 08:01 11 /opt/a path/libarrow.so.2600
Anonymous:            64 kB
7f0000300000-7f0000400000 rw-p 00300000 08:01 11 /opt/a path/libarrow.so.2600
Anonymous:             0 kB
7f0000400000-7f0000500000 r--p 00000000 00:00 0
Anonymous:             0 kB
"""


def test_only_libraries_pages_that_were_never_written_are_given_back():
    assert list(clean_stretches(SMAPS.strip().splitlines())) == [
        (0x7F0000000000, 0x7F0000100000),
        (0x7F0000100000, 0x7F0000200000),
    ]


def test_a_process_without_proc_goes_on(tmp_path):
    release_library_pages(tmp_path / "smaps")


def test_arrow_works_on_with_half_the_pages():
    words = """
import pyarrow as pa
from necroscope.model.library_pages import release_library_pages
file_kb = lambda: int(next(line for line in open("/proc/self/status") if line.startswith("RssFile")).split()[1])
before = file_kb()
release_library_pages()
after = file_kb()
assert pa.compress(b"x" * 1000, "zstd", asbytes=True)
print(after / before)
"""
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.5
