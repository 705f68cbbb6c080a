import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.interchange.detect import FileKind, detect

DATA = Path(__file__).parents[2] / "data" / "interchange"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("file.data", FileKind.PERF_DATA),
        ("pipe.data", FileKind.PERF_DATA),
        ("file.script.txt", FileKind.PERF_SCRIPT),
        ("mpstat_24h.txt", FileKind.MPSTAT),
        ("mpstat.json", FileKind.MPSTAT),
        ("dmesg.txt", FileKind.DMESG),
        ("dmesg_x.txt", FileKind.DMESG),
        ("dmesg_r.txt", FileKind.DMESG),
        ("dmesg_T.txt", FileKind.DMESG),
        ("dmesg_iso.txt", FileKind.DMESG),
    ],
)
def test_kinds(name: str, kind: FileKind, tmp_path: Path) -> None:
    assert detect(DATA / name) is kind
    if kind is not FileKind.PERF_DATA:
        packed = tmp_path / "packed.gz"
        packed.write_bytes(gzip.compress((DATA / name).read_bytes()))
        assert detect(packed) is kind


def test_folded_stacks(tmp_path: Path) -> None:
    path = tmp_path / "folded"
    path.write_text("bash;main;read 3\n")
    assert detect(path) is FileKind.FOLDED


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "empty"),
        (b"\x7fELF\0\0", "ELF"),
        (b"hello\n", "hello"),
        (b"\x1f\x8b\x08broken", "gzip"),
        (gzip.compress(b"PERFILE2"), "unpack|gzipped"),
    ],
)
def test_other_files_are_refused_with_their_first_bytes(
    content: bytes, match: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=match):
        detect(path)


def test_perf_data_is_imported_without_the_readers_of_other_kinds() -> None:
    """They take a fifth of the time before the first byte."""
    others = ("dmesg", "folded", "perf_script", "sar", "mpstat", "proc_series", "support_bundle")
    program = "import sys, necroscope.interchange.importer; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    modules = set(loaded.stdout.decode().split())
    assert "necroscope.interchange.perf_data.reader" in modules
    assert not modules & {f"necroscope.interchange.{name}" for name in others}
