"""Small C programs and libraries that a benchmark or a test compiles for itself."""

import subprocess
from pathlib import Path

# The clock as the recorder's process sees it, moved by as many seconds as a file says.
MOVED_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static volatile long *offset;
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) {
    int file = open(getenv("SOAK_CLOCK"), O_RDONLY);
    offset = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  }
  int answer = real(clock, now);
  if (clock == CLOCK_REALTIME && offset != MAP_FAILED) now->tv_sec += *offset;
  return answer;
}
"""


def compiled(work: Path, source: str, *words: str) -> str:
    made = work / f"program-{abs(hash((source, words)))}"
    if not made.exists():
        flags = ["-O1", "-fno-omit-frame-pointer", "-x", "c", "-"]
        subprocess.run(["gcc", *flags, "-o", made, *words], input=source.encode(), check=True)
    return str(made)
