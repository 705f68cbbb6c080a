"""Numbers taken by the native library are those that parsing gives."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.model.reading import Rows, Source
from necroscope.sources import kept_numbers
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.kept_numbers import KeptNumbers
from necroscope.sources.procfs.memory import Memory
from necroscope.sources.procfs.network import NetworkCounters
from necroscope.sources.procfs.pressure import Pressure
from necroscope.sources.procfs.softirqs import Softirqs
from necroscope.sources.procfs.softnet import SoftnetStat
from necroscope.sources.procfs.stat import Cores

SOURCES: list[Callable[[Path], Source]] = [
    Cores,
    Softirqs,
    SoftnetStat,
    Pressure,
    Memory,
    NetworkCounters,
]


def numbers_of(path: Path, text: str, places: list[int], end: bytes = b"") -> KeptNumbers:
    path.write_text(text)
    file = KeptFile(path)
    numbers = KeptNumbers(file, end=end)
    numbers.learn(file.read_record(), places)
    return numbers


def rewrite(path: Path, text: str) -> None:
    """In place: the descriptor that is kept sees it."""
    path.write_text(text)


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_gives_the_same_rows_with_and_without_the_library(
    source: Callable[[Path], Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(root: Path) -> list[dict[str, Rows]]:
        read = source(make_root(root, 3))
        found = []
        # A core comes, and another goes; then all counters begin again.
        for second, (cpus, step) in enumerate([(3, 0), (3, 2), (3, 7), (4, 9), (4, 12), (3, 1)]):
            make_root(root, cpus, step)
            found.append(read.read(at_second(second)).rows)
        read.close()
        return found

    quick = rows(tmp_path / "with")
    monkeypatch.setattr(kept_numbers, "_library", lambda: None)
    assert quick == rows(tmp_path / "without")
    assert sum(map(len, quick)) > 3


@pytest.mark.parametrize("source", SOURCES)
def test_after_the_first_read_nothing_is_parsed(
    source: Callable[[Path], Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = source(make_root(tmp_path, 2))
    read.read(at_second(0))
    learnt: list[bytes] = []
    monkeypatch.setattr(KeptNumbers, "learn", lambda _self, text, _places: learnt.append(text))
    for second in (1, 2):
        make_root(tmp_path, 2, second)
        assert read.read(at_second(second)).rows
    read.close()
    assert learnt == []


def test_rises_are_counted_from_the_last_read(tmp_path: Path) -> None:
    numbers = numbers_of(tmp_path / "f", "a 1 b 20\n", [1, 3])
    rewrite(tmp_path / "f", "a 4 b 19\n")
    assert numbers.take()
    assert (numbers.values, numbers.rises) == ((4, 19), (3, -1))
    assert numbers.take()
    assert numbers.rises == (0, 0)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a 4 c 19\n", id="another word"),
        pytest.param("a 4 b\n", id="a number less"),
        pytest.param("a 4 b 19 7\n", id="a number more"),
        pytest.param("a 4 b 19", id="a last line that is cut"),
        pytest.param("a -4 b 19\n", id="a number below 0"),
        pytest.param("a 4 b 1234567890123456789\n", id="a number of 64 bits"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_text_of_another_shape_is_left_to_be_parsed(tmp_path: Path, text: str) -> None:
    numbers = numbers_of(tmp_path / "f", "a 1 b 20\n", [1, 3])
    rewrite(tmp_path / "f", text)
    assert not numbers.take()
    assert numbers.values == (1, 20)
    rewrite(tmp_path / "f", "a 4 b 19\n")
    assert not numbers.take(), "its descriptor may be another file's: it is to be learnt again"


def test_what_stands_behind_the_end_does_not_matter(tmp_path: Path) -> None:
    numbers = numbers_of(tmp_path / "f", "cpu 1\nintr 7 8\n", [1], end=b"intr")
    rewrite(tmp_path / "f", "cpu 2\nintr 9\nctxt 5")
    assert numbers.take()
    assert numbers.rises == (1,)
    rewrite(tmp_path / "f", "cpu 2\n")
    assert not numbers.take()


def test_a_file_that_is_longer_than_the_room_for_it_is_always_parsed(tmp_path: Path) -> None:
    numbers = numbers_of(tmp_path / "f", "a 1 " + "b " * (1 << 16) + "\n", [1])
    assert not numbers.take()


def test_random_texts_are_taken_as_python_would_split_them(tmp_path: Path) -> None:
    chance = random.Random(7)
    file = KeptFile(tmp_path / "f")
    for _ in range(200):
        words = [
            chance.choice([str(chance.randrange(10**18)), "name", "a9", "0.5"]) for _ in range(12)
        ]
        write_files(tmp_path, {"f": chance.choice([" ", "\t", "="]).join(words) + "\n"})
        places = [place for place, word in enumerate(words) if word.isdigit()]
        numbers = KeptNumbers(file)
        numbers.learn(file.read_record(), places)
        assert numbers.take() == bool(places)
        if places:
            assert numbers.values == tuple(int(words[place]) for place in places)
    file.close()
