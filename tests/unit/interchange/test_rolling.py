from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.interchange.rolling import list_rolling, parse_name

S = 10**9
START = 1_776_249_000 * S  # 2026-04-15T10:30:00Z


@pytest.mark.parametrize(
    ("name", "kind", "host", "start_ns", "length_ns"),
    [
        ("perf-node-7-20260415-103000-120s.data", "perf.data", "node-7", START, 120 * S),
        (
            "perf-ip-10-1-2-3-2026-04-15T10:30:00Z-120s.data",
            "perf.data",
            "ip-10-1-2-3",
            START,
            120 * S,
        ),
        ("perf-node_2026-04-15_10-30-00.stacks.gz", "perf script", "node", START, None),
        ("node-1776249000.stacks", "perf script", "node", START, None),
        ("perf.data", "perf.data", None, None, None),
        ("perf-node-20261399-103000.data", "perf.data", "node", None, None),
    ],
)
def test_names(
    name: str, kind: str, host: str | None, start_ns: int | None, length_ns: int | None
) -> None:
    found = parse_name(Path(name))
    assert (found.kind, found.host, found.start_ns, found.length_ns) == (
        kind,
        host,
        start_ns,
        length_ns,
    )


def test_captures_come_in_the_order_of_their_start(tmp_path: Path) -> None:
    names = [
        "perf-b-20260415-103200-120s.data",
        "perf-a-20260415-103400-120s.data",
        "perf-c-20260415-103000.stacks",
        "notes.txt",
    ]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    assert [capture.path.name for capture in list_rolling(tmp_path)] == [
        names[2],
        names[0],
        names[1],
    ]


def test_directory_without_captures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no capture"):
        list_rolling(tmp_path)


def test_of_a_capture_and_its_text_one_is_taken(tmp_path: Path) -> None:
    for name in ("perf-a-20260415-103000-120s.data", "perf-a-20260415-103200-120s.data"):
        (tmp_path / name).write_bytes(b"x")
        (tmp_path / f"{name}.stacks").write_bytes(b"x" if "103000" in name else b"")
        (tmp_path / f"{name}.stacks.stacks").write_bytes(b"")
    kinds = [capture.kind for capture in list_rolling(tmp_path)]
    assert kinds == ["perf script", "perf.data"], "the second text is empty"
    kinds = [capture.kind for capture in list_rolling(tmp_path, prefers_text=False)]
    assert kinds == ["perf.data", "perf.data"]
