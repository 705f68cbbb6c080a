"""The recorder's side of the lookup process: names for addresses, with a limit on waiting. Standard
library only.

How long a call may wait: `timeout_s` for a target that hangs (then the lookup process is abandoned:
killed, not waited for, and another is started), twice that while answers keep coming, FIRST_USE_S
once, at the first call, for the process to load. A target that hung is not asked about for BLAME_S,
and nor are all processes of its tenant (its cgroup and user) after a second hang within that time;
each further one doubles it, so that a tenant who makes ever new targets loses its own names only.
A second hang of an unknown tenant within a minute makes a pause before the next start, in which
calls answer "unknown" at once; it doubles up to PAUSE_LIMIT_S. A process that cannot be started is
a failure like one that hangs.

Nothing here raises for a bad target or a node that cannot fork: what is not known is None.
"""

import os
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from necroscope.model.child import AbandonedChildren, Pauses, Start, start_process
from necroscope.symbols.lookup_child import ChildGone, LookupChild, command
from necroscope.symbols.messages import (
    FunctionBlock,
    ModuleAnswer,
    ProcessVariables,
    RequestKind,
    TaskDescription,
    UserRequest,
)
from necroscope.symbols.process_maps import Mapping

__all__ = ["FunctionBlock", "Lookup", "Mapping", "ModuleAnswer", "TaskDescription", "UserRequest"]

TIMEOUT_S: Final = 1.0
FIRST_USE_S: Final = 5.0
START_LIMIT_S: Final = 10.0
BLAME_S: Final = 60.0
PAUSE_LIMIT_S: Final = 30.0
_BLAMES_LIMIT: Final = 1024
_MOST_DOUBLINGS: Final = 6
# This many tenants may hang at a time before there are pauses: one user can make many cgroups.
_TENANTS: Final = 3
_CGROUP_LIMIT_BYTES: Final = 1 << 14


class Tenant(NamedTuple):
    """By user, too: where there are no containers, one cgroup may have everything in it."""

    user: int
    cgroup: bytes


class Lookup:
    """Starts the lookup process at the first question, or at `start`, which returns at once."""

    def __init__(
        self,
        root: Path = Path("/"),
        timeout_s: float = TIMEOUT_S,
        *,
        arguments: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        start: Start = start_process,
    ) -> None:
        self._start_process = start
        self._arguments = arguments if arguments is not None else command(root)
        self._proc = root / "proc"
        self._hangs_of: dict[Hashable, int] = {}
        self._timeout_s = timeout_s
        self._clock = clock
        self._child: LookupChild | None = None
        self._abandoned = AbandonedChildren()
        self._started_at = 0.0
        self._was_used = False
        self._sequence = 0
        self._blamed_until: dict[Hashable, float] = {}
        self._restarts = 0
        self._unanswered = 0
        self._pauses = Pauses(2.0, PAUSE_LIMIT_S, BLAME_S, is_first_free=True)

    @property
    def is_loading(self) -> bool:
        """Started and not yet able to answer: a caller that can wait asks later. Never longer than
        FIRST_USE_S after the start.
        """
        child = self._child
        if child is None or child.is_ready or self._clock() - self._started_at > FIRST_USE_S:
            return False
        self._receive(child, 0.0)
        return not child.is_ready

    @property
    def unanswered(self) -> int:
        """Questions that got no answer because no process was there to give one: what they asked
        for may have a name all the same.
        """
        return self._unanswered

    @property
    def restarts(self) -> int:
        """How many lookup processes had to be abandoned, or could not be started."""
        return self._restarts

    @property
    def pids(self) -> list[int]:
        """The process at work and those abandoned and not dead yet: part of the recorder's own
        cost.
        """
        return [*self._abandoned.pids, *([self._child.pid] if self._child is not None else ())]

    def start(self) -> None:
        self._abandoned.reap()
        if self._child is None and self._pauses.is_over(self._clock()):
            try:
                self._child = LookupChild(self._arguments, self._start_process)
            # the node has no process, memory or descriptor left: what is asked stays unknown until
            # it has
            except OSError:
                self._note_failure()
            self._started_at = self._clock()

    def close(self) -> None:
        """At most twice the time-out for each process that does not end."""
        child, self._child = self._child, None
        if child is not None:
            child.end(self._timeout_s)
        self._abandoned.end(self._timeout_s)

    def user_functions(self, requests: Sequence[UserRequest]) -> list[ModuleAnswer | None]:
        """The functions of blocks of mapped files."""
        blames = [(request.pid, request[1:5]) for request in requests]
        answers = self._ask(RequestKind.USER, [tuple(request) for request in requests], blames)
        return [
            answer
            and ModuleAnswer(answer[0], [FunctionBlock(*functions) for functions in answer[1]])
            for answer in answers
        ]

    def demangle(self, symbols: Sequence[str]) -> list[str]:
        """Names of C++ and Rust as people write them; as they are without an answer."""
        (answer,) = self._ask(RequestKind.DEMANGLE, [list(symbols)], [()])
        return answer if answer is not None else list(symbols)

    def jit_symbols(self, pid: int, addresses: Sequence[int]) -> list[str | None]:
        """Functions at addresses of no file, by the process's perf map."""
        (answer,) = self._ask(RequestKind.JIT, [(pid, list(addresses))], [(pid,)])
        return answer if answer is not None else [None] * len(addresses)

    def process_maps(self, pids: Sequence[int]) -> list[tuple[list[Mapping], bool] | None]:
        """Executable mappings of each, and whether there are more; None if the process is gone or
        not ours to see.
        """
        answers = self._ask(RequestKind.MAPS, [(pid,) for pid in pids], [(pid,) for pid in pids])
        return [
            answer and ([Mapping(*mapping) for mapping in answer[0]], answer[1])
            for answer in answers
        ]

    def describe_task(self, pid: int, tid: int, first_argument: int | None) -> TaskDescription:
        """`first_argument` is that of its system call: taken for a file descriptor."""
        (answer,) = self._ask(RequestKind.TASK, [(pid, tid, first_argument)], [(pid,)])
        return TaskDescription(*answer) if answer is not None else TaskDescription()

    def read_variables(
        self, pids: Sequence[int], names: Collection[str]
    ) -> list[ProcessVariables | None]:
        """Of each process those of its variables that are named; None if it is gone."""
        items = [(pid, tuple(names)) for pid in pids]
        answers = self._ask(RequestKind.VARIABLES, items, [(pid,) for pid in pids])
        return [answer and ProcessVariables(*answer) for answer in answers]

    def _ask(
        self, kind: RequestKind, items: Sequence[Any], blames: Sequence[tuple[Hashable, ...]]
    ) -> list[Any]:
        """One answer for each item, None for those that are blamed, hang, or cannot be asked."""
        answers: list[Any] = [None] * len(items)
        if self._blamed_until and max(self._blamed_until.values()) > self._clock():
            # Someone makes us hang: from now on whose targets they are must be known, and before
            # the process that has them can end.
            blames = [(*targets, *self._tenants(targets)) for targets in blames]
        asked = [index for index, targets in enumerate(blames) if not self._is_blamed(targets)]
        child = self._ready_child() if asked else None
        if child is None:
            self._unanswered += len(asked)
            return answers
        self._send(
            child, kind, [items[index] for index in asked], [blames[index] for index in asked]
        )
        results = self._collect(child, len(asked))
        self._unanswered += len(asked) - len(results)
        for index, result in zip(asked, results, strict=False):
            answers[index] = result
        return answers

    def _collect(self, child: LookupChild, count: int) -> list[Any]:
        results: list[Any] = []
        now = self._clock()
        end, hang_at = now + 2 * self._timeout_s, now + self._timeout_s
        while self._has(child) and len(results) < count and now < end:
            received = self._receive(child, min(end, hang_at) - now)
            now = self._clock()
            if received:
                hang_at = now + self._timeout_s
            elif now >= hang_at and self._has(child):
                self._abandon(child)
            # Answers to an earlier call, which did not wait for them, count as life but not as
            # ours.
            results += [result for sequence, result in received if sequence == self._sequence]
        return results

    def _ready_child(self) -> LookupChild | None:
        self.start()
        if self._child is not None and not self._child.is_ready:
            self._wait_until_ready(self._child)
        return self._child if self._child is not None and self._child.is_ready else None

    def _wait_until_ready(self, child: LookupChild) -> None:
        """A process that loads slowly is left alone up to START_LIMIT_S, while calls answer
        "unknown".
        """
        now = self._clock()
        end = now + (self._timeout_s if self._was_used else max(FIRST_USE_S, self._timeout_s))
        while self._has(child) and not child.is_ready and now < end:
            self._receive(child, end - now)
            now = self._clock()
        self._was_used = True
        if self._has(child) and not child.is_ready and now - self._started_at > START_LIMIT_S:
            self._abandon(child)

    def _has(self, child: LookupChild) -> bool:
        return child is self._child

    def _receive(self, child: LookupChild, timeout_s: float) -> list[tuple[int, Any]]:
        try:
            return child.receive(timeout_s)
        except ChildGone:
            self._abandon(child)
            return []

    def _send(
        self,
        child: LookupChild,
        kind: RequestKind,
        items: Sequence[Any],
        blames: Sequence[tuple[Hashable, ...]],
    ) -> None:
        self._sequence += 1
        try:
            child.ask(self._sequence, kind, items, blames)
        except ChildGone:
            self._abandon(child)

    def _abandon(self, child: LookupChild) -> None:
        targets = child.questions[0].blames if child.questions else ()
        self._blame(targets, self._clock())
        self._abandoned.leave(child)
        self._child = None
        is_known = any(isinstance(target, Tenant) for target in targets)
        if is_known and sum(isinstance(each, Tenant) for each in self._blamed_until) <= _TENANTS:
            self._restarts += 1
        else:
            self._note_failure()

    def _note_failure(self) -> None:
        self._restarts += 1
        self._pauses.failed(self._clock())

    def _blame(self, targets: tuple[Hashable, ...], now: float) -> None:
        self._blamed_until = {
            target: until for target, until in self._blamed_until.items() if until > now
        }
        if len(self._blamed_until) < _BLAMES_LIMIT:
            self._blamed_until |= {target: now + self._sentence_s(target) for target in targets}

    def _sentence_s(self, target: Hashable) -> float:
        if not isinstance(target, Tenant):
            return BLAME_S
        if len(self._hangs_of) >= _BLAMES_LIMIT:
            self._hangs_of.clear()
        hangs = self._hangs_of[target] = self._hangs_of.get(target, 0) + 1
        return float(BLAME_S * 2 ** min(hangs - 1, _MOST_DOUBLINGS))

    def _tenants(self, targets: tuple[Hashable, ...]) -> list["Tenant"]:
        """Whose process a target is: files of the kernel's own, which cannot hang."""
        pid = targets[0] if targets else None
        try:
            user = os.stat(f"{self._proc}/{pid}").st_uid
            with open(f"{self._proc}/{pid}/cgroup", "rb", buffering=0) as file:
                return [Tenant(user, file.read(_CGROUP_LIMIT_BYTES))]
        except OSError:
            return []

    def _is_blamed(self, targets: tuple[Hashable, ...]) -> bool:
        if not self._blamed_until:
            return False
        now = self._clock()
        return any(self._blamed_until.get(target, 0.0) > now for target in targets)
