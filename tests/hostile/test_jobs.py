"""Programs of `nobody` that claim to be part of jobs: by their variables, their logs and their
names. They take no one's place, and are no one else's ranks.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hostile.test_neighbours import MOST_RSS_BYTES
from tests.integration.test_processes import rss_bytes

pytestmark = [pytest.mark.kernel, pytest.mark.root]

NOBODY = 65534
# The one that runs these tests may lie where `nobody` cannot enter.
PYTHON = "/usr/bin/python3"
VICTIM = {"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "train-17", "MASTER_ADDR": "h"}
# 300 ranks with long variables; one claims to be of the victim's job and is killed; one has a pipe
# for a log, one the log of a Ray worker of its own.
CLAIMS = r"""
import json, os, signal, sys, time
fake = {"RANK": "7", "WORLD_SIZE": "8", "MASTER_ADDR": "\x1b[31mevil", "MASTER_PORT": "1" * 9000, "PAD": "x" * 100_000}
def start(variables, log="/dev/null"):
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        flags = os.O_RDWR | os.O_CREAT
        os.dup2(os.open(log, flags, 0o600), 2)
        os.execve("/bin/sleep", ["sleep", "60"], variables)
    return pid
folder = sys.argv[1]
os.mkfifo(folder + "/pipe")
ray = folder + "/ray/session_2026-01-01_00-00-00_000000_1/logs"
os.makedirs(ray)
words = open(ray + "/worker-" + "a" * 56 + "-01000000-1.err", "w")
words.write("kubelet[1]: Segmentation fault\nout of memory: Killed process 1 (kubelet)\n" * 1000)
words.close()
victim = start(json.loads(sys.argv[2]))
pids = [victim]
pids += [start(fake | {"TORCHELASTIC_RUN_ID": f"storm-{number % 90}"}) for number in range(300)]
pids.append(start(fake, folder + "/pipe"))
pids.append(start({}, words.name))
print(victim, flush=True)
sys.stdin.readline()
os.kill(victim, signal.SIGSEGV)
print("killed", flush=True)
sys.stdin.readline()
for pid in pids:
    try: os.kill(pid, signal.SIGKILL)
    except ProcessLookupError: pass
"""


@pytest.fixture
def claims() -> Iterator["subprocess.Popen[str]"]:
    if not Path(PYTHON).exists():
        pytest.skip(f"{PYTHON} is not installed")
    folder = Path("/tmp") / f"necroscope-claims-{os.getpid()}"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    process = subprocess.Popen(
        [PYTHON, "-c", CLAIMS, str(folder), json.dumps(VICTIM | {"RANK": "1"})], user=NOBODY, group=NOBODY, extra_groups=[],
        cwd="/", env={}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    yield process
    process.communicate("\n\n", timeout=30)
    subprocess.run(["rm", "-r", folder], check=True)


def test_three_hundred_false_ranks_take_no_place_and_are_not_anothers(record, claims):
    false_rank = int(claims.stdout.readline())
    honest = subprocess.Popen(["/bin/sleep", "60"], env=VICTIM)
    try:
        recorder = record("--jobs", "1s")
        recorder.wait_until(lambda: member(recorder, honest.pid), 60)
        recorder.wait_until(lambda: member(recorder, false_rank), 60)
        print("kill", file=claims.stdin, flush=True)
        assert claims.stdout.readline() == "killed\n"
        recorder.wait_until(lambda: member(recorder, false_rank)["ended_ns"], 30)
        recorder.wait_until(
            lambda: [row for row in recorder.rows("job_progress") if row["pid"] == honest.pid], 30
        )
        largest = rss_bytes(recorder.process.pid)
    finally:
        honest.kill()
        honest.wait()
    jobs = {row["job"] for row in recorder.rows("job_members") if row["pid"] == honest.pid}
    false = {row["job"] for row in recorder.rows("job_members") if row["pid"] == false_rank}
    assert jobs.isdisjoint(false), "the victim's job has no rank that it did not start"
    assert largest < MOST_RSS_BYTES
    events = [row["message"] for row in recorder.rows("events")]
    assert not [words for words in events if "kubelet" in words]
    assert all(words.isprintable() for words in events)
    code, _, _ = recorder.stop()
    assert code == 0


def member(recorder, pid: int):
    """Its last row."""
    return next((row for row in reversed(recorder.rows("job_members")) if row["pid"] == pid), None)
