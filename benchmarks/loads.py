"""Loads to record under: a mix and an exec storm, by shells that are gone when the block ends."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_MIXED = """
end=$((SECONDS + {seconds}))
while [ $SECONDS -lt $end ]; do
  {python} -c 'import json
for i in range(300): json.loads(json.dumps({{str(k): [k, str(k)] for k in range(1500)}}))'
  find /usr/lib -name "*.so*" > /dev/null
  head -c 12000000 /dev/zero | gzip -6 > /dev/null
  seq 150000 | sort -R | sort -n > /dev/null
  grep -r -c include /usr/include/linux > /dev/null
  head -c 6000000 /dev/urandom | sha256sum > /dev/null
done
"""
_FIND_AND_SORT = """
end=$((SECONDS + {seconds}))
while [ $SECONDS -lt $end ]; do find /usr -xdev -printf '%s %p\\n' | sort -n > /dev/null; done
"""
_EXEC_STORM = "end=$((SECONDS + {seconds})); while [ $SECONDS -lt $end ]; do /bin/true; done"


@contextmanager
def mixed(seconds: int, workers: int = 2) -> Iterator[None]:
    """Interpreter, compression, sorting, file walks and hashing on as many cores as there are
    workers.
    """
    with _shells(_MIXED.format(seconds=seconds, python=sys.executable), workers):
        yield


@contextmanager
def find_and_sort(seconds: int) -> Iterator[None]:
    """Two shells that walk /usr and sort what they found, again and again."""
    with _shells(_FIND_AND_SORT.format(seconds=seconds), 2):
        yield


@contextmanager
def exec_storm(seconds: int) -> Iterator[None]:
    """Two shells that start /bin/true again and again: what a crash loop looks like from below."""
    with _shells(_EXEC_STORM.format(seconds=seconds), 2):
        yield


@contextmanager
def _shells(script: str, count: int) -> Iterator[None]:
    shells = [
        subprocess.Popen(["bash", "-c", script], start_new_session=True) for _ in range(count)
    ]
    try:
        yield
    finally:
        for shell in shells:
            try:
                shell.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, 9)
                shell.wait()
