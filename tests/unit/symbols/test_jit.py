import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from necroscope.symbols import jit
from necroscope.symbols.jit import JitMaps, parse_status


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A root with one process, 4242, that is 7 in its own pid namespace and has its own root."""
    (tmp_path / "proc/4242/root/tmp").mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "proc/4242/status").write_text(
        f"Name:\tnode\nUid:\t{os.getuid()}\t{os.getuid()}\t0\t0\nNSpid:\t4242\t7\n"
    )
    return tmp_path


def map_of(root: Path) -> Path:
    return root / "proc/4242/root/tmp/perf-7.map"


def test_map_is_found_by_the_pid_of_the_targets_namespace(fake: Path) -> None:
    map_of(fake).write_text("1000 10 hot\n")
    assert JitMaps(fake).lookup(4242, [0x1001, 0x2000]) == ["hot", None]


def test_map_is_read_on_as_it_grows(fake: Path) -> None:
    maps = JitMaps(fake)
    map_of(fake).write_text("1000 10 hot\n2000 10 ha")
    assert maps.lookup(4242, [0x1001, 0x2001]) == ["hot", None]
    with map_of(fake).open("a") as file:
        file.write("lf\n1000 10 newer\n")
    assert maps.lookup(4242, [0x1001, 0x2001]) == ["newer", "half"]


def test_map_that_was_made_anew_is_another_one(fake: Path) -> None:
    maps = JitMaps(fake)
    map_of(fake).write_text("1000 10 old\n2000 10 old_too\n")
    assert maps.lookup(4242, [0x2001]) == ["old_too"]
    map_of(fake).write_text("1000 10 new\n")
    assert maps.lookup(4242, [0x1001, 0x2001]) == ["new", None]


def test_of_a_long_map_the_end_is_read(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "MAP_LIMIT_BYTES", 100)
    map_of(fake).write_text("".join(f"{number * 16:x} 10 f{number}\n" for number in range(1, 101)))
    assert JitMaps(fake).lookup(4242, [0x10, 100 * 16]) == [None, "f100"]


def test_map_of_another_user_is_not_believed(fake: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("chown needs root")
    map_of(fake).write_text("1000 10 lie\n")
    os.chown(map_of(fake), 12345, 12345)
    assert JitMaps(fake).lookup(4242, [0x1001]) == [None]


def test_dead_process_keeps_the_map_that_was_read(fake: Path) -> None:
    maps = JitMaps(fake)
    map_of(fake).write_text("1000 10 hot\n")
    assert maps.lookup(4242, [0x1001]) == ["hot"]
    shutil.rmtree(fake / "proc/4242")
    assert maps.lookup(4242, [0x1001]) == ["hot"]


@pytest.mark.skipif(os.geteuid() != 0, reason="makes files of root and of nobody")
def test_map_that_a_dead_process_left_in_the_nodes_root_is_read_if_it_is_roots(fake: Path) -> None:
    left = fake / "tmp/perf-99.map"
    left.write_text("1000 10 late\n")
    assert JitMaps(fake).lookup(99, [0x1001]) == ["late"]
    os.chown(left, 65534, 65534)
    assert JitMaps(fake).lookup(99, [0x1001]) == [None]


def test_a_large_map_is_read_a_piece_at_a_question(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("necroscope.symbols.jit._PIECE_BYTES", 20)
    maps = JitMaps(fake)
    map_of(fake).write_text("1000 10 first\n2000 10 second\n")
    assert maps.lookup(4242, [0x1001, 0x2001]) == ["first", None]
    assert maps.lookup(4242, [0x1001, 0x2001]) == ["first", "second"]


def test_new_process_of_the_same_pid_has_no_map(fake: Path) -> None:
    maps = JitMaps(fake)
    map_of(fake).write_text("1000 10 hot\n")
    assert maps.lookup(4242, [0x1001]) == ["hot"]
    map_of(fake).unlink()
    assert maps.lookup(4242, [0x1001]) == [None]


def test_maps_beyond_the_limit_are_forgotten(fake: Path) -> None:
    maps = JitMaps(fake, limit_bytes=1)
    map_of(fake).write_text("1000 10 hot\n")
    (fake / "tmp/perf-99.map").write_text("1000 10 late\n")
    assert maps.lookup(4242, [0x1001]) == ["hot"]
    assert maps.lookup(99, [0x1001]) == ["late"]
    assert len(maps._maps) == 1


def test_status_without_namespaces_has_no_other_pid() -> None:
    assert parse_status(b"Name:\tx\nUid:\t1\t2\t3\t4\n") == (None, 2)
    assert parse_status(b"") == (None, None)


@pytest.fixture
def private_map() -> Iterator[Any]:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a mount namespace needs root and unshare")
    # The interpreter may itself lie below /tmp: it is loaded before that is covered.
    script = (
        "import os,sys;os.system('mount -t tmpfs none /tmp');"
        "open(f'/tmp/perf-{os.getpid()}.map','w').write('1000 10 in its namespace\\n');"
        "print(1,flush=True);sys.stdin.read()"
    )
    command = ["unshare", "-m", "-p", "--fork", "--kill-child", sys.executable, "-c", script]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()  # type: ignore[union-attr]
    yield process
    process.kill()
    process.communicate()


@pytest.mark.root
@pytest.mark.kernel
def test_live_map_in_another_mount_and_pid_namespace_is_read(private_map: Any) -> None:
    (child,) = Path(f"/proc/{private_map.pid}/task/{private_map.pid}/children").read_text().split()
    assert JitMaps(Path("/")).lookup(int(child), [0x1001]) == ["in its namespace"]
