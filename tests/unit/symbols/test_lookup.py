import errno
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from necroscope.symbols import lookup as module
from necroscope.symbols.lookup import Lookup, Mapping, ModuleAnswer, TaskDescription, UserRequest
from necroscope.symbols.messages import BLOCK_BITS, NO_FUNCTION, pack_block, unpack_block

TIMEOUT_S = 0.3
NEVER_READY = "import time; time.sleep(1000)"
NEVER_ANSWERS = (
    "import os, time; from necroscope.symbols.messages import pack; os.write(1, pack((0, None)));"
    " time.sleep(1000)"
)
# Answers what it is asked, but hangs on (or dies of) the item whose pid is 13, as the real one
# would on a hung mount.
PICKY = """
import os, signal
from necroscope.symbols.lookup_process import serve
from necroscope.symbols.messages import RequestKind, pack, pack_block
def maps(item):
    if item[0] == 13: {fault}
    return ([], False)
def user(item):
    if item[0] == 13: {fault}
    return ("id", [tuple(pack_block([(0, b"f")]))] * len(item[5]))
os.write(1, pack((0, None)))
serve(0, 1, {{RequestKind.MAPS: maps, RequestKind.USER: user, RequestKind.DEMANGLE: lambda item: ["d"] * len(item)}})
"""
HANG = "signal.pause()"
CRASH = "os.kill(os.getpid(), signal.SIGSEGV)"


class FakeClock:
    """Real time plus what a test adds."""

    def __init__(self) -> None:
        self.added_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.added_s


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scripted(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A Lookup whose child is a script."""
    monkeypatch.setattr(module, "FIRST_USE_S", 5.0)
    made: list[Lookup] = []

    def make(script: str, root: Path = Path("/nowhere")) -> Lookup:
        arguments = [sys.executable, "-c", script]
        made.append(Lookup(root, timeout_s=TIMEOUT_S, arguments=arguments, clock=clock))
        return made[-1]

    yield make
    for lookup in made:
        lookup.close()


@pytest.fixture
def real() -> Iterator[Lookup]:
    lookup = Lookup(timeout_s=5.0)
    yield lookup
    lookup.close()
    assert lookup.pids == []


def wait_until_dead(pid: int) -> None:
    """Until it is a zombie; it is not reaped."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def wait_until_ready(lookup: Lookup) -> None:
    """A restarted process has the time-out of a question to load, which a busy machine may not
    give it.
    """
    deadline = time.monotonic() + 10
    while lookup._ready_child() is None and time.monotonic() < deadline:
        pass


def user(pid: int, path: str = "/lib/a.so", count: int = 1) -> UserRequest:
    return UserRequest(pid, path, 8, 1, 77, tuple(range(count)))


@pytest.mark.kernel
def test_real_process_answers_everything(real: Lookup) -> None:
    found, absent = real.process_maps([os.getpid(), 1 << 22])
    assert found is not None
    assert absent is None
    mappings, is_bounded = found
    assert not is_bounded
    libc = next(mapping for mapping in mappings if "libc.so" in mapping.path)
    blocks = tuple(
        range(
            libc.file_offset >> BLOCK_BITS, (libc.file_offset + libc.end - libc.start) >> BLOCK_BITS
        )
    )
    (answer,) = real.user_functions([UserRequest(os.getpid(), libc.path, *libc[3:6], blocks)])
    assert answer is not None
    assert len(answer.functions) == len(blocks)
    assert sum(bool(functions.names) for functions in answer.functions) > len(blocks) / 2
    for functions in answer.functions:
        starts = [start for start, _ in unpack_block(functions)]
        assert starts == sorted({0, *starts})
    assert real.describe_task(os.getpid(), os.getpid(), 0).comm is not None
    assert real.jit_symbols(os.getpid(), [1]) == [None]
    assert real.demangle(["_ZN3foo3barEv", "_RNvCs1_3foo3bar", "plain", "_Z\\xff"]) == [
        "foo::bar()",
        "foo::bar",
        "plain",
        "_Z\\xff",
    ]
    assert real.restarts == 0


@pytest.mark.kernel
def test_targets_that_do_not_exist_are_unknown(real: Lookup) -> None:
    assert real.process_maps([1 << 22, -1]) == [None, None]
    assert real.process_maps([]) == []
    assert real.describe_task(1 << 22, 1 << 22, 3) == TaskDescription()
    assert real.user_functions([user(1 << 22, "/\udcff\0", 2), user(0, "")]) == [
        ModuleAnswer(None, [NO_FUNCTION, NO_FUNCTION]),
        ModuleAnswer(None, [NO_FUNCTION]),
    ]
    assert real.user_functions([]) == []
    assert real.jit_symbols(1 << 22, [-5, 1 << 70]) == [None, None]


@pytest.mark.kernel
def test_many_questions_pass_the_pipes(real: Lookup) -> None:
    assert real.jit_symbols(1 << 22, [0] * 200_000) == [None] * 200_000
    answers = real.user_functions(
        [user(1 << 22, f"/absent/{number}", 100) for number in range(500)]
    )
    assert len(answers) == 500


@pytest.mark.kernel
def test_signals_of_the_terminal_are_the_recorders(real: Lookup) -> None:
    real.demangle(["_Z1"])
    (pid,) = real.pids
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pid, number)
    assert real.process_maps([os.getpid()]) != [None]
    assert real.pids == [pid]
    assert os.getpgid(pid) != os.getpgid(0)
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(os.getpriority(os.PRIO_PROCESS, 0) + 5, 19)


def test_start_does_not_wait(scripted: object) -> None:
    lookup = scripted(NEVER_READY)  # type: ignore[operator]
    start_s = time.monotonic()
    lookup.start()
    assert time.monotonic() - start_s < 0.25
    assert len(lookup.pids) == 1


def test_on_a_node_that_cannot_fork_everything_is_unknown_until_it_can(
    scripted: object, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*words: object, **options: object) -> None:
        tries.append(clock())
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    tries: list[float] = []
    lookup = scripted(PICKY.format(fault=HANG))  # type: ignore[operator]
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", refuse)
        lookup.start()
        assert lookup.user_functions([user(7), user(8)]) == [None, None]
        assert lookup.demangle(["_Z1"]) == ["_Z1"]
        assert (lookup.pids, lookup.is_loading, lookup.unanswered, lookup.restarts) == (
            [],
            False,
            3,
            2,
        )
        assert len(tries) == 2, "after the second failure it pauses"
    assert lookup.demangle(["_Z1"]) == ["_Z1"]
    clock.added_s += module.PAUSE_LIMIT_S
    wait_until_ready(lookup)
    assert lookup.demangle(["_Z1"]) == ["d"]


def test_process_that_loads_slowly_is_left_alone_and_then_abandoned(
    scripted: object, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_USE_S", TIMEOUT_S)
    lookup = scripted(NEVER_READY)  # type: ignore[operator]
    assert lookup.demangle(["_Z1"]) == ["_Z1"]
    (pid,) = lookup.pids
    assert lookup.restarts == 0
    clock.added_s += module.START_LIMIT_S
    assert lookup.demangle(["_Z1"]) == ["_Z1"]
    assert lookup.restarts == 1
    wait_until_dead(pid)
    lookup.start()
    assert pid not in lookup.pids


def test_hung_process_is_abandoned_in_time_and_another_started(scripted: object) -> None:
    lookup = scripted(NEVER_ANSWERS)  # type: ignore[operator]
    lookup.start()
    wait_until_ready(lookup)
    (first,) = lookup.pids
    start_s = time.monotonic()
    assert lookup.demangle(["_Z1", "_Z2"]) == ["_Z1", "_Z2"]
    assert TIMEOUT_S <= time.monotonic() - start_s < TIMEOUT_S + 0.5
    assert lookup.restarts == 1
    wait_until_dead(first)
    lookup.start()
    assert first not in lookup.pids
    assert len(lookup.pids) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


@pytest.mark.parametrize("fault", [HANG, CRASH], ids=["hangs", "crashes"])
def test_only_the_target_at_fault_is_unknown_and_it_is_not_asked_again(
    fault: str, scripted: object, clock: FakeClock
) -> None:
    lookup = scripted(PICKY.format(fault=fault))  # type: ignore[operator]
    requests = [user(1), user(13, "/hung/b.so"), user(2, "/lib/c.so")]
    found, unknown = ModuleAnswer("id", [pack_block([(0, b"f")])]), None
    assert lookup.user_functions(requests) == [found, unknown, unknown]
    assert lookup.restarts == 1
    wait_until_ready(lookup)
    assert lookup.user_functions(requests) == [
        found,
        unknown,
        found,
    ], "the one at fault is left out"
    assert lookup.user_functions([user(3, "/hung/b.so")]) == [unknown], (
        "and so is its file for others"
    )
    assert lookup.process_maps([13]) == [None]
    assert lookup.restarts == 1
    clock.added_s += module.BLAME_S + 1
    assert lookup.user_functions(requests) == [found, unknown, unknown]
    assert lookup.restarts == 2


def test_of_many_processes_only_the_one_at_fault_has_unknown_mappings(scripted: object) -> None:
    lookup = scripted(PICKY.format(fault=HANG))  # type: ignore[operator]
    pids, found = [1, 13, 2, 3], ([], False)
    assert lookup.process_maps(pids) == [found, None, None, None]
    wait_until_ready(lookup)
    assert lookup.process_maps(pids) == [found, None, found, found]


def test_mappings_say_whether_there_are_more(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    lines = [
        b"%x000-%x000 r-xp 00001000 08:01 5 /srv/\xff\n" % (number, number + 1)
        for number in range(1, 5000)
    ]
    (tmp_path / "proc/7/maps").write_bytes(b"".join(lines))
    lookup = Lookup(tmp_path, timeout_s=5.0)
    try:
        (found,) = lookup.process_maps([7])
    finally:
        lookup.close()
    assert found is not None
    mappings, is_bounded = found
    assert (len(mappings), is_bounded) == (4096, True)
    assert mappings[0] == Mapping(0x1000, 0x2000, 0x1000, 8, 1, 5, "/srv/\udcff")


def test_a_tenant_that_makes_ever_new_targets_loses_its_own_names_only(
    scripted: object, clock: FakeClock, tmp_path: Path
) -> None:
    for pid in range(1, 60):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/cgroup").write_text("0::/hostile" if pid >= 13 else "0::/good")
    lookup = scripted(PICKY.format(fault=HANG).replace("== 13", ">= 13"), tmp_path)  # type: ignore[operator]
    assert lookup.process_maps([1]) == [([], False)]
    for pid in range(13, 60):
        assert lookup.process_maps([pid]) == [None]
        if lookup.restarts < 3:
            wait_until_ready(lookup)
            assert lookup.process_maps([2]) == [([], False)], "others have their names at once"
    assert lookup.restarts == 2, "its first target, and the one that told whose it was"
    clock.added_s += module.BLAME_S - 10
    assert lookup.process_maps([2]) == [([], False)]


def test_many_hanging_targets_cost_a_drain_no_more_than_two_waits(
    scripted: object, clock: FakeClock
) -> None:
    lookup = scripted(PICKY.format(fault=HANG).replace("== 13", ">= 13"))  # type: ignore[operator]
    assert lookup.process_maps([1]) == [([], False)]
    start_s = time.monotonic()
    for pid in range(13, 60):
        assert lookup.process_maps([pid]) == [None]
    assert lookup.restarts == 2
    assert time.monotonic() - start_s < 2 * TIMEOUT_S + 2.5
    clock.added_s += 2.1
    wait_until_ready(lookup)
    assert lookup.process_maps([1]) == [([], False)], "after the pause it is asked again"


def test_command_that_cannot_run_is_unknown_and_not_started_without_end(scripted: object) -> None:
    lookup = scripted("raise SystemExit(1)")  # type: ignore[operator]
    for _ in range(20):
        assert lookup.demangle(["_Z1"]) == ["_Z1"]
    assert lookup.restarts == 2


def test_nonsense_on_the_pipe_is_a_failure_not_an_exception(scripted: object) -> None:
    lookup = scripted("import os, time; os.write(1, b'\\xff' * 100); time.sleep(1000)")  # type: ignore[operator]
    assert lookup.demangle(["_Z1"]) == ["_Z1"]
    assert lookup.restarts == 1


def test_answers_that_come_too_late_are_not_taken_for_others(scripted: object) -> None:
    slow = PICKY.format(fault="pass").replace(
        "def user(item):", "def user(item):\n    import time; time.sleep(0.15)"
    )
    lookup = scripted(slow)  # type: ignore[operator]
    answers = lookup.user_functions([user(pid, f"/{pid}") for pid in range(1, 7)])
    known = sum(answer is not None for answer in answers)
    assert 1 <= known < 6, "answers kept coming, but the call ended after two time-outs"
    assert lookup.demangle(["_Z1"]) == ["d"]
    assert lookup.restarts == 0


def test_close_ends_a_hung_process_too(scripted: object) -> None:
    lookup = scripted(NEVER_ANSWERS)  # type: ignore[operator]
    wait_until_ready(lookup)
    (pid,) = lookup.pids
    lookup.close()
    assert lookup.pids == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.kernel
@pytest.mark.parametrize("root", ["/", "/nonexistent"])
def test_killed_recorder_leaves_no_process(root: str) -> None:
    code = (
        "import pathlib, sys; from necroscope.symbols.lookup import Lookup;"
        f"lookup = Lookup(pathlib.Path({root!r}), 5.0); lookup.demangle(['_Z1']);"
        "print(*lookup.pids, flush=True); sys.stdin.read()"
    )
    recorder = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert recorder.stdout is not None
    child = os.pidfd_open(int(recorder.stdout.readline()))
    try:
        recorder.kill()
        recorder.communicate()
        assert select.select([child], [], [], 5)[0], "it still runs"
    finally:
        os.close(child)


@pytest.mark.kernel
def test_process_holds_no_file_of_its_targets(real: Lookup) -> None:
    (found,) = real.process_maps([os.getpid()])
    assert found is not None
    real.user_functions(
        [
            UserRequest(os.getpid(), m.path, *m[3:6], (m.file_offset >> BLOCK_BITS,))
            for m in found[0]
            if m.path.startswith("/")
        ]
    )
    (pid,) = real.pids
    descriptors = {os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
    assert {name.partition(":")[0] for name in descriptors} == {"/dev/null", "pipe"}
