"""Programs of `nobody` choose mappings and stacks that hurt the profile: it stays small, and they
harm only themselves.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.test_processes import rss_bytes
from tests.programs import program

from necroscope.store.query import Store

pytestmark = [pytest.mark.kernel, pytest.mark.root]

NOBODY = 65534
MOST_RSS_BYTES = 100 << 20
PROCESSES, MAPPINGS = 40, 62_000
MEMORY_CGROUPS = [Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")]
# Pages that may and may not be executed in turns are a mapping each. Then a little work now and
# then.
MANY_MAPPINGS = r"""
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
  for (int number = atoi(words[count - 1]); number > 0; number--)
    mmap(0, 4096, number % 2 ? PROT_READ | PROT_EXEC : PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  write(1, ".", 1);
  for (time_t end = time(0) + 60; time(0) < end; usleep(100000))
    for (volatile int spin = 0; spin < 6000000; spin++) {}
}
"""
# The kernel follows frame pointers through user memory: a program chooses all callers that a sample
# shows.
FORGED_STACKS = r"""
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
int main(int count, char **words) {
  uint64_t size = 512ull << 20, frames[2 * 130], seed = 1;
  char *code = mmap(0, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (time_t end = time(0) + atoi(words[count - 1]); time(0) < end;) {
    for (int i = 0; i < 129; i++) {
      seed = seed * 6364136223846793005ull + 1442695040888963407ull;
      frames[2 * i] = (uint64_t)&frames[2 * i + 2];
      frames[2 * i + 1] = (uint64_t)code + (seed >> 20) % size;
    }
    frames[258] = frames[259] = 0;
    __asm__ volatile(
        "push %%rbp; mov %0, %%rbp; mov $20000, %%ecx; 1: dec %%ecx; jnz 1b; pop %%rbp" : : "r"(frames) : "ecx", "memory");
  }
}
"""


@pytest.fixture
def cgroup() -> Iterator[Path]:
    root = next(directory for directory in MEMORY_CGROUPS if (directory / "cgroup.procs").exists())
    made = root / f"necroscope-hostile-{os.getpid()}"
    made.mkdir()
    yield made
    made.rmdir()


@pytest.fixture
def compiled() -> Iterator[Callable[[str], str]]:
    """Programs where `nobody` can run them."""
    compiler = program("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    folder = Path(tempfile.mkdtemp(prefix="necroscope-hostile-"))
    folder.chmod(0o755)

    def compile_one(source: str) -> str:
        (folder / "program.c").write_text(source)
        subprocess.run(
            [
                compiler,
                "-O1",
                "-fno-omit-frame-pointer",
                "-o",
                folder / "program",
                folder / "program.c",
            ],
            check=True,
        )
        return str(folder / "program")

    yield compile_one
    shutil.rmtree(folder)


def in_cgroup(made: Path) -> Callable[[], None]:
    """For a child between fork and exec: into the cgroup, then without rights."""

    def enter() -> None:
        (made / "cgroup.procs").write_text(str(os.getpid()))
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        os.nice(10)

    return enter


def bounded_gaps(store: Store) -> set[str]:
    rows = store.rows("gaps", 0, 1 << 62).to_pylist()
    return {
        row["cause"]
        for row in rows
        if row["table"] == "frames" and "used up its share" in row["cause"]
    }


def frames_of_others(store: Store, own: str) -> set[str]:
    """Modules of the innermost frames of samples outside of that cgroup."""
    merged = store.samples(0, 1 << 62)  # each segment counts its stacks from 0
    samples, stacks, frames = (
        table.to_pylist() for table in (merged.samples, merged.stacks, merged.frames)
    )
    return {
        frames[stacks[row["stack"]]["frame"]]["module"]
        for row in samples
        if own not in (row["cgroup"] or "")
    }


@pytest.mark.slow
def test_forty_programs_of_62000_mappings_do_not_fill_the_recorder(record, cgroup, compiled, leaks):
    command = [compiled(MANY_MAPPINGS), str(MAPPINGS)]
    hostile = [
        subprocess.Popen(command, preexec_fn=in_cgroup(cgroup), cwd="/", stdout=subprocess.PIPE)
        for _ in range(PROCESSES)
    ]
    try:
        assert [process.stdout.read(1) for process in hostile] == [b"."] * PROCESSES
        recorder = record("--segment", "10s")
        recorder.wait_for_rows("samples", 400, seconds=40)
        largest = max(
            rss_bytes(recorder.process.pid) for _ in recorder.wait_for_rows("cores", 12, seconds=40)
        )
    finally:
        for process in hostile:
            process.kill()
            process.communicate()
    code, facts, _ = recorder.stop()
    assert (code, facts["lost_samples"]) == (0, 0)
    assert largest < MOST_RSS_BYTES
    assert "[bounded]" not in frames_of_others(Store.open(recorder.directory), cgroup.name)
    assert leaks() == []


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program sets x86's frame pointer")
def test_forged_stacks_on_all_cores_bound_only_those_who_forge_them(
    record, cgroup, compiled, leaks
):
    command = [compiled(FORGED_STACKS), "60"]
    recorder = record("--hz", "997", "--budget", "100")
    recorder.wait_for_rows("samples", 10)
    before = rss_bytes(recorder.process.pid)
    hostile = [
        subprocess.Popen(command, preexec_fn=in_cgroup(cgroup), cwd="/")
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        seen = len(recorder.rows("cores"))
        recorder.wait_for_rows("cores", seen + 16, seconds=60)
        largest = rss_bytes(recorder.process.pid)
    finally:
        for process in hostile:
            process.kill()
            process.wait()
    code, facts, _ = recorder.stop()
    store = Store.open(recorder.directory)
    assert (code, facts["lost_samples"], facts["segments"]) == (
        0,
        0,
        1,
    ), "no segment is closed early for them"
    assert largest < MOST_RSS_BYTES
    assert largest - before < 40 << 20
    assert any(cgroup.name in cause for cause in bounded_gaps(store))
    assert "[bounded]" not in frames_of_others(store, cgroup.name)
    assert leaks() == []
