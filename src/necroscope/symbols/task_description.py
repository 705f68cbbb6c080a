"""What /proc says about one thread: program, state, scheduling, cgroup, and the file behind a
descriptor (proc(5)).

Only argv[0] is read: arguments may hold secrets. Reading cmdline can block as long as the process
holds its mmap lock.
"""

import os
from collections.abc import Collection, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Final

from necroscope.model.definitions import REAL_TIME
from necroscope.model.names import clean
from necroscope.symbols.messages import ProcessVariables, TaskDescription
from necroscope.symbols.target_files import read_bounded
from necroscope.symbols.task_cgroup import parse_cgroup

_READ_LIMIT_BYTES: Final = 1 << 16
_TITLE_WORDS: Final = 4
_ARGV0_LIMIT_BYTES: Final = 4096
# Of an environment that is larger its beginning: launchers put theirs anywhere, and few are.
_ENVIRON_LIMIT_BYTES: Final = 1 << 18
_STANDARD_ERROR: Final = 2
# include/uapi/linux/sched.h; 4 is reserved.
_POLICIES: Final = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}


def describe(
    root: Path, own_roots: Mapping[bytes, bytes], pid: int, tid: int, first_argument: int | None
) -> TaskDescription:
    process = root / f"proc/{pid}"
    thread = process / f"task/{tid}"
    stat = read_bounded(thread / "stat", _READ_LIMIT_BYTES)
    comm, state, policy, priority = parse_stat(stat or b"")
    return TaskDescription(
        argv0=_parse_argv0(read_bounded(process / "cmdline", _ARGV0_LIMIT_BYTES)),
        comm=comm,
        state=state,
        policy=policy,
        priority=priority,
        cpus_allowed=_parse_cpus_allowed(read_bounded(thread / "status", _READ_LIMIT_BYTES) or b""),
        cgroup=parse_cgroup(read_bounded(thread / "cgroup", _READ_LIMIT_BYTES) or b"", own_roots),
        file=_file_behind(process, first_argument),
        executable=_read_link(process / "exe"),
    )


def read_variables(
    root: Path, own_roots: Mapping[bytes, bytes], pid: int, names: Collection[str]
) -> ProcessVariables:
    """Nothing of an environment leaves this process but the variables with these names."""
    process = root / f"proc/{pid}"
    environ = read_bounded(process / "environ", _ENVIRON_LIMIT_BYTES)
    return ProcessVariables(
        variables=None if environ is None else parse_environ(environ, names),
        log=_read_link(process / f"fd/{_STANDARD_ERROR}"),
        cgroup=parse_cgroup(read_bounded(process / "cgroup", _READ_LIMIT_BYTES) or b"", own_roots),
    )


def parse_environ(text: bytes, names: Collection[str]) -> dict[str, str]:
    """The first of a name counts, as in getenv(3)."""
    found: dict[str, str] = {}
    for entry in text.split(b"\0"):
        name, is_set, value = entry.partition(b"=")
        key = name.decode("ascii", "replace")
        if is_set and key in names:
            found.setdefault(key, clean(value))
    return found


def parse_stat(text: bytes) -> tuple[str | None, str | None, str | None, int | None]:
    """Name, state, policy and priority; a name may hold spaces and brackets, so fields are counted
    from the last one.
    """
    name, bracket, rest = text.rpartition(b")")
    fields = rest.split()
    if not bracket or len(fields) < 39:
        return None, None, None, None
    comm, state = clean(name.partition(b"(")[2]), clean(fields[0], 1)
    # Fields 19, 40 and 41 of proc(5); `state` is the third.
    nice, real_time_priority, policy_number = (int(fields[index]) for index in (16, 37, 38))
    policy = _POLICIES.get(policy_number)
    return comm, state, policy, real_time_priority if policy in REAL_TIME else nice


def _parse_argv0(text: bytes | None) -> str | None:
    """A title that a program gave itself (setproctitle) may be a whole command line: of its words
    those before the first option, assignment or address.
    """
    words = (text or b"").partition(b"\0")[0].split(b" ")
    title = [words[0], *takewhile(_is_plain, words[1:_TITLE_WORDS])]
    argv0 = b" ".join(title)
    return clean(argv0) if argv0 else None


def _is_plain(word: bytes) -> bool:
    return not word.startswith((b"-", b"/")) and not set(word) & set(b"=@:?&")


def _parse_cpus_allowed(text: bytes) -> str | None:
    for line in text.split(b"\n"):
        if line.startswith(b"Cpus_allowed_list:"):
            return clean(line.partition(b":")[2].strip())
    return None


def _file_behind(process: Path, descriptor: int | None) -> str | None:
    # Any number may stand in the register: only what can be a descriptor is one.
    if descriptor is None or not 0 <= descriptor < 1 << 31:
        return None
    return _read_link(process / f"fd/{descriptor}")


def _read_link(link: Path) -> str | None:
    try:
        return clean(os.fsencode(os.readlink(link)), _ARGV0_LIMIT_BYTES)
    except OSError:
        return None
