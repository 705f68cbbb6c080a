"""The reader printed in docs/format.md reads a journal: what the page says is what is written."""

import re
import subprocess
import sys
from pathlib import Path

from necroscope.segment.reader import SegmentReader

ROOT = Path(__file__).parents[3]


def test_reader_of_the_page_sees_every_frame_after_a_damaged_one(tmp_path, record):
    live = record()
    journal = live / "journal"
    code = re.search(
        r"```python\n(.*?)```", (ROOT / "docs" / "format.md").read_text("utf-8"), re.DOTALL
    )
    (tmp_path / "reader.py").write_text(code[1])
    data = bytearray(journal.read_bytes())
    data[80] ^= 1
    journal.write_bytes(data)
    printed = subprocess.run(
        [sys.executable, tmp_path / "reader.py", journal],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows: dict[str, int] = {}
    for name, count in re.findall(r"^(\w+) (\d+)$", printed, re.MULTILINE):
        rows[name] = rows.get(name, 0) + int(count)
    assert rows == SegmentReader(live).tables
    assert 'totals {"idle_samples": 40}' in printed
    assert "node-a" not in printed, "the note that was damaged never happened"
