"""Real dead memory cgroups of this kernel: found by what pins them, freed, and nothing else."""

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from necroscope.treat import treatment
from necroscope.treat.act_ledger import TAKEN_BACK, ledgers
from necroscope.treat.dead_pages import Pins, find_pins
from necroscope.treat.kernel_pages import KernelPages
from necroscope.treat.purge import PurgeStep
from necroscope.treat.treatment import Treatment
from necroscope.treat.undo_kinds import UNDO_KINDS

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from dead_cgroups import HIERARCHY, DeadCgroups, cache_file, in_child

ROOT = Path("/")
pytestmark = [
    pytest.mark.kernel,
    pytest.mark.root,
    pytest.mark.skipif(
        not (HIERARCHY / "memory.stat").exists() or not Path("/proc/kpagecgroup").exists(),
        reason="needs cgroup v1 with the memory controller, and /proc/kpagecgroup",
    ),
]


@pytest.fixture
def made() -> Iterator[DeadCgroups]:
    dead = DeadCgroups(f"necroscope-test-{secrets.token_hex(4)}")
    yield dead
    dead.close()


@pytest.fixture
def state() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory, "state")


def pins(made: DeadCgroups) -> Pins:
    pages = KernelPages()
    try:
        return find_pins(ROOT, pages, [made.disk, made.memory], below=made.below)
    finally:
        pages.close()


def purge(made: DeadCgroups, state: Path) -> PurgeStep:
    step = PurgeStep(pins(made), ROOT, state / "saved-pages")
    treatment.apply(Treatment("test", (step,)), ROOT, state, UNDO_KINDS, lambda _: None)
    return step


def test_three_kinds_of_pins_are_found_and_freed_and_all_content_and_other_cache_stays(
    made: DeadCgroups, state: Path
) -> None:
    made.add(40, 30, 30)
    made.add_neighbour(8 << 20)
    content, cached = made.digest(), made.cached_pages()
    step = purge(made, state)
    assert {file.kind for file in step.pins.found} == {"page cache", "tmpfs", "shared memory"}
    # The kernel may reclaim a cold page by itself meanwhile.
    assert step.pins.explained >= 95
    assert not step.left
    assert not pins(made).found
    assert made.digest() == content
    assert made.cached_pages() >= 0.95 * cached


def test_a_file_that_a_process_has_open_is_left_and_said(made: DeadCgroups, state: Path) -> None:
    made.add(0, 3, 0)
    files = sorted(made.memory.iterdir())
    with files[0].open("rb"):
        step = purge(made, state)
    assert dict(step.left) == {"tmpfs: a process has it open": 1}
    assert sum(file.pages for file in pins(made).found) == 1


def test_a_parent_with_cache_of_its_own_is_left_alone(made: DeadCgroups, state: Path) -> None:
    made.add(5, 0, 0)
    in_child(cache_file, made.pods, made.disk / "own", 4 << 20)
    assert not pins(made).ancestors
    step = purge(made, state)
    assert not step.pins.found
    assert step.describe()


def test_names_that_are_not_text_are_freed_like_others(made: DeadCgroups, state: Path) -> None:
    made.add(0, 2, 0)
    first, second = sorted(made.memory.iterdir())
    os.rename(bytes(first), bytes(made.memory) + b"/\xff\n; rm -rf")
    os.rename(bytes(second), bytes(made.memory) + b"/\x1b[2J")
    step = purge(made, state)
    assert not step.left
    assert all(line.isprintable() for line in step.describe())
    assert not pins(made).found


def test_a_purge_that_fails_in_the_middle_leaves_all_content_and_no_copy(
    made: DeadCgroups, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.add(5, 5, 20)
    content = made.digest()
    step = PurgeStep(pins(made), ROOT, state / "saved-pages")
    taken = []

    def stop(*_: object) -> None:
        taken.append(1)
        if len(taken) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(step.bites, "pause", stop)
    with pytest.raises(KeyboardInterrupt):
        treatment.apply(Treatment("test", (step,)), ROOT, state, UNDO_KINDS, lambda _: None)
    assert made.digest() == content
    assert not list(made.memory.glob(".necroscope-*"))
    assert not list(state.glob("saved-pages*"))
    assert ledgers(state)[0].record().outcome == TAKEN_BACK
