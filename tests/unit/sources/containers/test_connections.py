"""Who is connected to a daemon when containers start."""

from pathlib import Path

import pytest
from tests.fake_processes import connected, process

from necroscope.sources.containers.connections import ConnectionLog

MS = 1_000_000
STARTS_NS = [1_000 * MS, 3_000 * MS]


class Watched:
    """A log of looks at chosen moments."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (root / "proc").mkdir()
        for pid, unit in ((8, "ecs"), (9, "exporter"), (7, "docker")):
            process(root, pid, unit, [unit], f"0::/system.slice/{unit}.service\n")
        self._pids: dict[int, str] = {}
        connected(monkeypatch, self._pids)
        self._log = ConnectionLog(root, ["/run/docker.sock"])

    def look(self, time_ns: int, *pids: int) -> None:
        self._pids.clear()
        self._pids.update({pid * 1_000 + time_ns // MS: str(pid) for pid in pids})
        self._log.look(time_ns)

    def maker(self, starts_ns: list[int]) -> str | None:
        found = self._log.maker(starts_ns)
        return found.unit if found is not None else None

    def how(self) -> str:
        found = self._log.maker(STARTS_NS)
        assert found is not None
        return found.how


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(tmp_path, monkeypatch)


def test_the_unit_that_is_connected_at_each_start_is_the_maker(watched: Watched) -> None:
    watched.look(900 * MS, 8, 7)
    watched.look(2_000 * MS, 9)
    watched.look(2_950 * MS, 8)
    assert watched.maker(STARTS_NS) == "ecs.service"
    assert "at all 2 starts that were watched (pid 8)" in watched.how()


def test_a_unit_that_asks_questions_between_the_starts_is_not_accused(watched: Watched) -> None:
    watched.look(2_000 * MS, 9)
    watched.look(3_500 * MS, 9)
    assert watched.maker(STARTS_NS) is None


def test_a_unit_that_was_connected_at_one_start_by_chance_is_not_accused(watched: Watched) -> None:
    watched.look(900 * MS, 8, 9)
    assert watched.maker(STARTS_NS) is None
    watched.look(2_950 * MS, 8)
    assert watched.maker(STARTS_NS) == "ecs.service"


def test_of_two_units_that_stay_connected_neither_is_accused(watched: Watched) -> None:
    watched.look(900 * MS, 8, 9)
    watched.look(2_950 * MS, 8, 9)
    assert watched.maker(STARTS_NS) is None


def test_a_container_that_did_not_start_while_watched_has_no_maker(watched: Watched) -> None:
    watched.look(900 * MS, 8)
    assert watched.maker([9_000 * MS]) is None
    assert watched.maker([]) is None
