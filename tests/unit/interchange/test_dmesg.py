from pathlib import Path

import pytest

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.dmesg import parse_line, read_dmesg

DATA = Path(__file__).parents[2] / "data" / "interchange"
S = 10**9


@pytest.mark.parametrize(
    ("line", "time_ns", "since_boot_ns", "severity", "message"),
    [
        ("[   12.345678] ena: reset", None, 12_345_678_000, 6, "ena: reset"),
        ("[   12.345678][ T123] ena: reset", None, 12_345_678_000, 6, "ena: reset"),
        ("<3>[   12.345678] ena: reset", None, 12_345_678_000, 3, "ena: reset"),
        ("kern  :warn  : [   12.345678] ena: reset", None, 12_345_678_000, 4, "ena: reset"),
        ("[Wed Apr 15 10:30:00 2026] ena: reset", 1_776_249_000 * S, None, 6, "ena: reset"),
        (
            "2026-04-15T10:30:00,250000+00:00 ena: reset",
            1_776_249_000 * S + S // 4,
            None,
            6,
            "ena: reset",
        ),
        (
            "2026-04-15T12:30:00+02:00 host kernel: ena: reset",
            1_776_249_000 * S,
            None,
            6,
            "ena: reset",
        ),
        ("Apr 15 10:30:00 node-7 kernel: ena: reset", 1_776_249_000 * S, None, 6, "ena: reset"),
        (
            "Apr 15 10:30:00 node-7 kernel: [   12.345678] ena: reset",
            1_776_249_000 * S,
            12_345_678_000,
            6,
            "ena: reset",
        ),
    ],
)
def test_forms_of_a_line(
    line: str, time_ns: int | None, since_boot_ns: int | None, severity: int, message: str
) -> None:
    found = parse_line(line.encode(), 2026)
    assert found is not None
    assert (found.time_ns, found.since_boot_ns, found.severity, found.message) == (
        time_ns,
        since_boot_ns,
        severity,
        message,
    )


def test_forms_of_one_log_agree() -> None:
    raw, marked = (list(read_dmesg(DATA / name)) for name in ("dmesg_r.txt", "dmesg_x.txt"))
    assert [line[1:2] + line[4:] for line in raw] == [line[1:2] + line[4:] for line in marked]
    dated, iso = (list(read_dmesg(DATA / name)) for name in ("dmesg_T.txt", "dmesg_iso.txt"))
    assert [line.message for line in dated] == [line.message for line in iso]
    assert all(
        abs((a.time_ns or 0) - (b.time_ns or 0)) <= S for a, b in zip(dated, iso, strict=True)
    )


def test_line_without_a_time_is_part_of_the_record_before(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("[    1.000000] Call Trace:\n  mem_cgroup_iter+0x1\n[    2.000000] end\n")
    lines = list(read_dmesg(path))
    assert [(line.since_boot_ns, line.message) for line in lines] == [
        (S, "Call Trace:\\x0a  mem_cgroup_iter+0x1"),
        (2 * S, "end"),
    ]


def test_other_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("hello\n" * 100)
    with pytest.raises(UsageError, match="not a kernel log"):
        list(read_dmesg(path))


def test_binary_bytes_end_it_with_their_byte(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"[    1.000000] a\n\0")
    with pytest.raises(CorruptData, match="byte 17"):
        list(read_dmesg(path))


def test_impossible_dates_are_no_times() -> None:
    assert parse_line(b"[Wed Apr 99 10:30:00 2026] x", 2026) is None
    assert parse_line(b"Feb 31 10:30:00 h kernel: x", 2026) is None
