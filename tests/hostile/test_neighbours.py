"""Programs of `nobody` that cost the recorder as much as they can: it goes on, names others, and
stays within its bounds.
"""

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.test_processes import rss_bytes
from tests.programs import program

from necroscope.model.units import NS_PER_S

pytestmark = [pytest.mark.kernel, pytest.mark.root]

NOBODY = 65534
MOST_RSS_BYTES = 150 << 20
# Runs code that it made itself, under a perf map whose every entry lies around every address.
HOSTILE_PERF_MAP = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  unsigned char loop[] = {0xb9, 0x00, 0x00, 0x10, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
  void *code = mmap(0, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, loop, sizeof loop);
  char name[64];
  snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
  FILE *map = fopen(name, "w");
  for (int number = 0; number < 300000; number++)
    fprintf(map, "%lx %x kubelet_%d\n", (unsigned long)code, number % 2 ? 16 : 1 << 20, number);
  fclose(map);
  write(1, ".", 1);
  for (time_t end = time(0) + 60; time(0) < end;) ((void (*)(void))code)();
}
"""
# Processes that live for a moment, each with another name, as many as its user may have.
FORKS = r"""
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  struct rlimit most = {200, 200};
  setrlimit(RLIMIT_NPROC, &most);
  write(1, ".", 1);
  unsigned number = 0;
  for (time_t end = time(0) + 60; time(0) < end; number++) {
    pid_t child = fork();
    if (child == 0) {
      char name[16];
      snprintf(name, sizeof name, "x\nBUG: %u", number);
      prctl(PR_SET_NAME, name);
      for (volatile int spin = 0; spin < 100000; spin++) {}
      _exit(0);
    }
    while (waitpid(-1, 0, child < 0 ? 0 : WNOHANG) > 0) {}
  }
}
"""


@pytest.fixture
def hostile() -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Compiles a program and runs it as nobody; it says when it has prepared what it is up to."""
    compiler = program("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    folder = Path(tempfile.mkdtemp(prefix="necroscope-hostile-"))
    folder.chmod(0o755)
    started: list[subprocess.Popen[bytes]] = []

    def run(source: str) -> subprocess.Popen[bytes]:
        (folder / "program.c").write_text(source)
        subprocess.run(
            [compiler, "-O1", "-o", folder / "program", folder / "program.c"], check=True
        )
        process = subprocess.Popen(
            [str(folder / "program")], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
            stdout=subprocess.PIPE, start_new_session=True, preexec_fn=lambda: os.nice(10) and None,
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.read(1) == b"."
        return process

    yield run
    for process in started:
        os.killpg(process.pid, 9)
        process.communicate()
        Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)
    shutil.rmtree(folder)


def own_names(recorder, pid: int) -> set[str]:
    """Functions of the samples of a process."""
    stacks = {row["stack"]: row["frame"] for row in recorder.rows("stacks")}
    names = {row["frame"]: row["function"] for row in recorder.rows("frames")}
    return {
        names.get(stacks.get(row["stack"])) for row in recorder.rows("samples") if row["pid"] == pid
    }


def longest_silence_s(recorder) -> float:
    times = sorted({row["time"] for row in recorder.rows("cores")})
    return max((b - a) / NS_PER_S for a, b in itertools.pairwise(times))


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program makes x86 code")
def test_a_hostile_perf_map_costs_others_no_names(record, busy, hostile):
    hostile(HOSTILE_PERF_MAP)
    honest = busy("import os; os.nice(10)\nwhile True: sum(range(1000))")
    recorder = record()
    recorder.wait_until(
        lambda: any(name and not name.startswith("0x") for name in own_names(recorder, honest.pid)),
        60,
    )
    recorder.wait_for_rows("cores", 20, seconds=60)
    largest = rss_bytes(recorder.process.pid)
    code, facts, _ = recorder.stop()
    assert (code, facts["lost_samples"]) == (0, 0)
    assert largest < MOST_RSS_BYTES


@pytest.mark.slow
def test_a_storm_of_short_processes_neither_ends_nor_blinds_nor_fills_it(record, hostile):
    recorder = record()
    recorder.wait_for_rows("cores", 2)
    before = rss_bytes(recorder.process.pid)
    hostile(FORKS)
    seen = len(recorder.rows("cores"))
    recorder.wait_for_rows("cores", seen + 10 * (os.cpu_count() or 1), seconds=90)
    largest = rss_bytes(recorder.process.pid)
    code, _, _ = recorder.stop()
    assert code == 0
    assert largest < MOST_RSS_BYTES
    assert largest - before < 60 << 20
    gaps = [row for row in recorder.rows("gaps") if row["table"] == "cores"]
    assert longest_silence_s(recorder) < 3 or gaps, "what was missed is said"
    assert [row for row in recorder.rows("events") if row["pattern"]] == []
