"""The live profile: rings in, rows of `samples`, `stacks` and `frames` out; what the core asks is
answered from /proc and files.

Everything that is known of tasks is a cache of the kernel's truth: when records were lost it is
thrown away and filled again. What belongs to other processes is read by the lookup process, which
may hang; their names and cgroups are files of the kernel's own that cannot.
"""

import os
from collections import defaultdict
from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from ctypes import Array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from necroscope.model.reading import ColumnBuffers, Rows
from necroscope.perf_abi import records
from necroscope.profile.core import Core, CoreLimits, PassedOn, Question, QuestionKind
from necroscope.profile.frame_names import FrameNames
from necroscope.profile.kernel_functions import KernelFunctions
from necroscope.profile.kernel_symbols import read as read_kernel_symbols
from necroscope.profile.library import NativeRing
from necroscope.profile.sample_columns import sample_columns, stack_columns
from necroscope.symbols.messages import NO_FUNCTION, ModuleAnswer, UserRequest
from necroscope.symbols.process_maps import Mapping
from necroscope.symbols.task_cgroup import parse_cgroup

LIMITS: Final = CoreLimits(
    48 << 20, 12 << 20, tenant_stacks=80_000, tenant_unnamed=4_000, most_stacks=400_000
)
# A segment that needs more stacks is closed early, so that its reader stays small.
FULL_STACKS: Final = 300_000
# Functions kept from one segment to the next, about 100 bytes each.
_MOST_FUNCTIONS: Final = 60_000
# Functions are asked for, then code that a mapping of the same turn lies over.
_MOST_ROUNDS: Final = 4
# Processes older than we are; each takes a question to the lookup process. More of them have to
# wait for the next turn.
_MOST_MAPPINGS_ASKED: Final = 256
# A file of which ever new functions run: it is cheaper to learn all of them at once, if they are
# not too many.
_FEW_QUESTIONS: Final = 2
_MOST_BLOCKS: Final = 256
_MOST_CGROUPS: Final = 60_000
_INIT: Final = 1
# A task that has left the pid table (a thread that reaped itself) runs a little longer; the kernel
# gives it this number.
_KNOWN_NAMES: Final = {0: b"swapper", -1: b"[exited]"}


class LiveLookup(Protocol):
    """The lookup process, as `symbols.lookup.Lookup` gives it; everything unknown is None."""

    def user_functions(self, requests: Sequence[UserRequest]) -> list[ModuleAnswer | None]: ...

    def demangle(self, symbols: Sequence[str]) -> list[str]: ...

    def jit_symbols(self, pid: int, addresses: Sequence[int]) -> list[str | None]: ...

    def process_maps(self, pids: Sequence[int]) -> list[tuple[list[Mapping], bool] | None]: ...

    @property
    def is_loading(self) -> bool: ...

    @property
    def unanswered(self) -> int: ...


@dataclass(slots=True)
class Turn:
    """What one turn gave. `frames` are rows, the others columns; `passed_on` is what is not about
    stacks.
    """

    samples: ColumnBuffers | None = None
    stacks: ColumnBuffers | None = None
    frames: Rows = field(default_factory=list)
    passed_on: list[PassedOn] = field(default_factory=list)
    # By cgroup, or "" where it is unknown: frames that were bounded, and processes whose mappings
    # were not asked for.
    bounded: dict[str, int] = field(default_factory=dict)
    unasked: int = 0
    has_new_kernel_code: bool = False


class LiveProfile:
    def __init__(
        self,
        lookup: LiveLookup,
        proc: Path,
        own_roots: MappingType[bytes, bytes],
        limits: CoreLimits = LIMITS,
    ) -> None:
        self.core = Core(limits, asks=True)
        self.names = FrameNames(self.core, lookup.demangle)
        self.kernel = KernelFunctions(self.core, lambda: read_kernel_symbols(proc / "kallsyms"))
        self._lookup = lookup
        self._proc = str(proc)
        self._own_roots = own_roots
        self._cgroups: dict[str, int] = {}
        self._cgroup_paths: list[str] = []
        self._ask_counts: defaultdict[int, int] = defaultdict(int)
        self._guessed: list[tuple[int, int]] = []
        self._unanswered = 0
        self._stacks_taken = 0
        self._frames_taken = 0

    @property
    def is_full(self) -> bool:
        return bool(self.core.view.node_count >= FULL_STACKS)

    @property
    def is_loading(self) -> bool:
        """The first names take a second to load, and the rings hold many."""
        return self._lookup.is_loading

    def cgroup_path(self, number: int) -> str:
        return self._cgroup_paths[number]

    def turn(self, rings: "Array[NativeRing]", until_ns: int, offset_ns: int) -> Turn:
        """All records up to a monotonic time; `offset_ns` turns it into the recording's time."""
        core, turn = self.core, Turn()
        core.drain(rings)
        core.replay(until_ns, offset_ns)
        # First of all: kernel code that came in this turn has its own name at once.
        for passed in core.passed_on():
            if self._take_kernel_code(passed.record):
                turn.has_new_kernel_code = True
            else:
                turn.passed_on.append(passed)
        for _ in range(_MOST_ROUNDS):
            questions = core.questions()
            if not questions:
                break
            turn.unasked += self._answer(questions)
            if not core.resume():
                break
        core.finish()
        self._take_rows(turn)
        self._forget_guesses()
        return turn

    def start_segment(self) -> None:
        """Call it right after a turn, when nothing is half written."""
        if self.core.start_segment(_MOST_FUNCTIONS):
            self.names.forget()
            self._ask_counts.clear()
        self._stacks_taken = self._frames_taken = 0
        if len(self._cgroup_paths) > _MOST_CGROUPS:
            self._cgroups.clear()
            self._cgroup_paths.clear()
            self.core.forget_tasks()

    def close(self) -> None:
        self.core.close()

    def _take_rows(self, turn: Turn) -> None:
        core = self.core
        turn.samples = sample_columns(core, self._cgroup_paths)
        turn.stacks = stack_columns(core, self._stacks_taken)
        turn.frames = self.names.rows(self._frames_taken)
        self._stacks_taken, self._frames_taken = core.view.node_count, core.view.frame_count
        for cgroup, count in core.take_bounded():
            turn.bounded[
                self._cgroup_paths[cgroup] if 0 <= cgroup < len(self._cgroup_paths) else ""
            ] = count

    def _take_kernel_code(self, record: bytes) -> bool:
        """True if it was a record of a BPF program, or of other code, that came or went."""
        if records.HEADER.unpack_from(record)[0] != records.KSYMBOL:
            return False
        start, length, _, flags = records.KSYMBOL_BODY.unpack_from(record, records.HEADER.size)
        if flags & records.KSYMBOL_GONE:
            self.kernel.unload(start, length)
        else:
            name = record[records.HEADER.size + records.KSYMBOL_BODY.size :].partition(b"\0")[0]
            self.kernel.load(start, length, name)
        return True

    # Answers.

    def _answer(self, questions: list[Question]) -> int:
        """How many processes were not asked about."""
        by_kind: defaultdict[int, list[Question]] = defaultdict(list)
        for question in questions:
            by_kind[question.kind].append(question)
        for question in by_kind[QuestionKind.NAME]:
            self.core.set_name(question.tid, self._name(question))
        for question in by_kind[QuestionKind.CGROUP]:
            self.core.set_cgroup(question.pid, self._cgroup(question))
        unasked = self._answer_mappings(
            [question.pid for question in by_kind[QuestionKind.MAPPINGS]]
        )
        self._answer_blocks(by_kind[QuestionKind.BLOCK])
        self._answer_places(by_kind[QuestionKind.PLACE])
        return unasked

    def _name(self, question: Question) -> bytes:
        """Of one that exited before we looked, and whose exec would have been seen, the name it had
        from its parent.
        """
        known = _KNOWN_NAMES.get(question.tid)
        if known is not None:
            return known
        for process, thread in ((question.pid, question.tid), (question.parent, question.parent)):
            try:
                return _read(f"{self._proc}/{process}/task/{thread}/comm").removesuffix(b"\n")
            except OSError:
                continue
        return b":%d" % question.tid

    def _cgroup(self, question: Question) -> int:
        """Its parent's if it exited before we looked, unless that is init, which moves its children
        before they exec.
        """
        for pid in (question.pid, question.parent if question.parent > _INIT else 0):
            if pid <= 0:
                continue
            try:
                path = parse_cgroup(_read(f"{self._proc}/{pid}/cgroup"), self._own_roots)
            except OSError:
                continue
            if path is None:
                return -1
            number = self._cgroups.get(path)
            if number is None:
                number = self._cgroups[path] = len(self._cgroup_paths)
                self._cgroup_paths.append(path)
            return number
        return -1

    def _answer_mappings(self, pids: list[int]) -> int:
        asked, unasked = pids[:_MOST_MAPPINGS_ASKED], pids[_MOST_MAPPINGS_ASKED:]
        for pid, answer in zip(
            asked, self._lookup.process_maps(asked) if asked else (), strict=True
        ):
            mappings, is_bounded = answer if answer is not None else (None, False)
            self.core.set_mappings(pid, mappings, is_bounded=is_bounded)
        for pid in unasked:
            self.core.set_mappings(pid, None, is_bounded=True)
        return len(unasked)

    def _answer_blocks(self, questions: list[Question]) -> None:
        wanted: dict[int, tuple[int, set[int]]] = {}
        for question in questions:
            if question.module == 0:
                self.kernel.answer(question.where)
                continue
            pid_and_blocks = wanted.setdefault(question.module, (question.pid, set()))
            pid_and_blocks[1].add(question.where)
            if (
                self._ask_counts[question.module] >= _FEW_QUESTIONS
                and question.last - question.first < _MOST_BLOCKS
            ):
                pid_and_blocks[1].update(range(question.first, question.last + 1))
        if wanted:
            self._answer_files(wanted)

    def _answer_files(self, wanted: dict[int, tuple[int, set[int]]]) -> None:
        requests = []
        for number, (pid, blocks) in wanted.items():
            path, major, minor, inode, _ = self.core.module(number)
            requests.append(
                UserRequest(pid, os.fsdecode(path), major, minor, inode, tuple(sorted(blocks)))
            )
            self._ask_counts[number] += 1
        for number, request, answer in zip(
            wanted, requests, self._lookup.user_functions(requests), strict=True
        ):
            if answer is None:
                # The lookup process did not answer. There are no functions, until it is known why.
                self._guessed += [(number, block) for block in request.blocks]
            build_id, functions = answer or ModuleAnswer(None, [NO_FUNCTION] * len(request.blocks))
            self.names.build_ids[number] = self.names.build_ids.get(number) or build_id
            for block, found in zip(request.blocks, functions, strict=True):
                self.core.learn_block(number, block, found)

    def _answer_places(self, questions: list[Question]) -> None:
        """Code that a just-in-time compiler made, with its perf map; without one it is unknown."""
        by_pid: defaultdict[int, list[Question]] = defaultdict(list)
        for question in questions:
            by_pid[question.pid].append(question)
        for pid, asked in by_pid.items():
            names = self._lookup.jit_symbols(pid, [question.where for question in asked])
            for question, name in zip(asked, names, strict=True):
                self.core.learn_place(
                    question.module,
                    question.where,
                    (name or "").encode("utf-8", "backslashreplace"),
                )

    def _forget_guesses(self) -> None:
        """What got no answer was taken for nameless; it may have a name when it is asked for
        again.

        A target that is not asked because it hung stays nameless until it is forgotten.
        """
        unanswered, self._unanswered = self._unanswered, self._lookup.unanswered
        guessed, self._guessed = self._guessed, []
        if unanswered != self._unanswered:
            for module, block in guessed:
                self.core.forget_block(module, block)


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 65536)
    finally:
        os.close(descriptor)
