"""Makes a perf.data of many programs with deep stacks: `python benchmarks/varied_capture.py FILE
[SECONDS [short]]`.

Distributions build programs without frame pointers, so their stacks are two frames long; a
service's are not. Hence a program of our own with 400 functions, built with frame pointers, whose
paths are many, deep and end in system calls, beside the others. With `short` it is the other
extreme: a thousand processes per second, each of which maps its files, runs for a moment and ends.
"""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

# Where a BPF program is unloaded meanwhile, perf 6.1 cannot read its own file: "failed to process
# type: 17".
RECORD = [
    "perf",
    "record",
    "-q",
    "-a",
    "-g",
    "-F",
    "997",
    "-e",
    "cpu-clock",
    "-k",
    "CLOCK_MONOTONIC",
]
RECORD += ["--no-bpf-event", "-N", "-m", "4M"]
# Compilers, interpreters, version control, file walks, sorting and compression, so that there are
# many programs and deep stacks.
VARIED_LOAD = r"""
cd "$1"
while :; do
  for i in 1 2 3; do
    printf '#include <stdio.h>\n#include <math.h>\n#include <stdlib.h>\n' > a.c
    printf 'int f(int a){int s=%d;for(;a;a--)s+=a*a^s;return s;}\nint main(){return f(99);}\n' $i >> a.c
    gcc -O2 -o a a.c
  done
  printf '#include <map>\n#include <regex>\n#include <vector>\nint main(){}\n' > b.cc; g++ -fsyntax-only b.cc
  python3 -c "
import ast, json, random, re
d = [{'a': random.random(), 'b': str(i) * 5} for i in range(20000)]
s = json.dumps(d); json.loads(s); re.findall(r'(\d+)\.(\d+)', s); sorted(x['b'] for x in d)
for _ in range(20): ast.parse('x = [a + b * (c - d) for a in e if f(a)]\n' * 300)"
  timeout 4 "$3"
  find /usr -xdev -name '*.h' | sort -r > list
  tar cf - /usr/include | gzip -3 > tar.gz
  git -C "$2" log --stat -p
  seq 200000 | shuf | sort -n | md5sum
  perl -e 'my %h; $h{$_ % 777} .= $_ for 1 .. 200000;'
  grep -rc foo /usr/include
done > /dev/null 2>&1
"""
# Scripts that start a program for each line they read: every process has mappings of its own, and
# few samples.
SHORT_LOAD = r"""
cd "$1"
while :; do
  for i in $(seq 100); do
    echo "$i" | sed 's/1/2/' | tr 2 3
    expr "$i" \* 3
    test -d /usr && [ "$(basename /usr/include)" = include ] && date +%s
    ls /usr/include | head -n 3
  done
done > /dev/null 2>&1
"""

FUNCTIONS = 400
DEEP_HEAD = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
static volatile unsigned long spent;
static void leaf(unsigned seed) {
  struct stat found; char page[4096]; static int zero = -1;
  if (zero < 0) zero = open("/dev/zero", O_RDONLY);
  switch (seed % 6) {
    case 0: stat("/usr/include/linux/perf_event.h", &found); break;
    case 1: if (read(zero, page, sizeof page) < 0) abort(); break;
    case 2: {
      char *fresh = mmap(0, 1 << 16, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      fresh[5000] = 1;
      munmap(fresh, 1 << 16);
      break;
    }
    default: for (int i = 0; i < 900; i++) spent += i ^ seed;
  }
}
"""


def deep_program() -> str:
    """Each function calls one of three others, to a depth of 6 to 20."""
    declared = "\n".join(f"void work_{n}(int, unsigned);" for n in range(FUNCTIONS))
    bodies = "\n".join(
        f"__attribute__((noinline)) void work_{n}(int depth, unsigned seed) {{ unsigned next = seed"
        " * 1103515245u + 12345u; for (int i = 0; i < 40; i++) spent += i; if (depth <= 0)"
        " leaf(next >> 8); else switch (next >> 16 & 15) { case 0:"
        f" work_{(n * 7 + 1) % FUNCTIONS}(depth - 1, next); break; case 1: case 2:"
        f" work_{(n * 3 + 2) % FUNCTIONS}(depth - 1, next); break; default:"
        f" work_{(n + 11) % FUNCTIONS}(depth - 1, next); }} spent++; }}"
        for n in range(FUNCTIONS)
    )
    main = (
        "int main(void) { for (unsigned n = getpid();; n++) work_0(6 + n % 15, n * 2654435761u); }"
    )
    return "\n".join([DEEP_HEAD, declared, bodies, main])


def make_capture(path: Path, seconds: int, load: str = VARIED_LOAD) -> None:
    """Three workers, so that both cores are never idle. The program stays beside the capture, which
    has its names from there.
    """
    deep = path.with_suffix(".deep").absolute()
    build = [
        "gcc",
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-x",
        "c",
        "-",
        "-o",
        deep,
    ]
    subprocess.run(build, input=deep_program().encode(), check=True)
    repository = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as directory, ExitStack() as ended:
        for number in range(3):
            folder = Path(directory) / str(number)
            folder.mkdir()
            worker = subprocess.Popen(
                ["bash", "-c", load, "load", folder, repository, deep], start_new_session=True
            )
            ended.callback(worker.wait)
            ended.callback(os.killpg, worker.pid, signal.SIGKILL)
        subprocess.run([*RECORD, "-o", str(path), "--", "sleep", str(seconds)], check=True)


if __name__ == "__main__":
    wanted = SHORT_LOAD if sys.argv[3:] == ["short"] else VARIED_LOAD
    make_capture(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 90, wanted)
