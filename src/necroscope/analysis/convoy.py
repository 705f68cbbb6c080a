"""A convoy: who stood behind one lock, who had it, and what that one waited for in turn, with what
is said of it.
"""

from dataclasses import dataclass
from typing import Final

from necroscope.analysis.attribution import container_of
from necroscope.analysis.case import Case
from necroscope.analysis.columns import ColumnArrays
from necroscope.analysis.functions import functions
from necroscope.analysis.node import Node
from necroscope.analysis.report import Culprit, Evidence, Origin
from necroscope.analysis.task_origin import origin_of, process_origin
from necroscope.analysis.task_waits import RUNNABLE, TaskWait, Waiter, whole_waits
from necroscope.analysis.wait_channels import (
    ANSWERED,
    ASLEEP,
    CHILD_TO_END,
    DEVICE,
    ORDINARY_SLEEP,
    STOPPED,
    UNANSWERED,
    UNREAD,
    UNSERVED,
    WRITEBACK,
)
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

# Of the time that the lock was held: less is not what it was held for.
MUCH: Final = 0.3
# Who has a lock alone has it for nearly as long as the first behind it waits.
_FEW_HOLDERS, _ALONE = 2, 0.7
_NAMED: Final = 3
# Where a holder was found while others waited for it: sleeps that are ordinary by themselves,
# and so are not recorded as waits.
_WHEREABOUTS: Final = (
    (functions("do_signal_stop ptrace_stop"), "it is stopped, by a signal or a debugger"),
    (functions("hrtimer_nanosleep do_nanosleep msleep*"), "it sleeps until a timer ends"),
    (functions("do_wait kernel_wait4 wait_for_vfork_done"), "it waits for a child process"),
    (functions("n_tty_read tty_read"), "it waits for a terminal"),
    (functions("pipe_read anon_pipe_read"), "it waits to read from a pipe"),
    (
        functions(
            "sk_wait_data wait_woken unix_stream_* unix_dgram_* inet_csk_accept tcp_recvmsg*"
        ),
        "it waits for a socket",
    ),
    (functions("ep_poll do_epoll_wait do_sys_poll do_select"), "it waits for a request"),
    (functions("futex_* __futex_* do_futex"), "it waits for another thread"),
    (functions("do_freezer_trap cgroup_enter_frozen __refrigerator"), "it is frozen"),
)
# Sleeps of a holder that say nothing of what holds it up.
_OWN_WILL: Final = frozenset((ORDINARY_SLEEP, UNANSWERED, UNREAD, ASLEEP))
_STOPPED: Final = functions("do_signal_stop ptrace_stop do_freezer_trap cgroup_enter_frozen")


@dataclass(frozen=True)
class Convoy:
    """`holder` is None where it was neither seen to give the lock back nor found while others
    waited; `holder_stack` is how it gave it back, `found_in` where it was meanwhile. `chain` is
    what the holder waited for, and so on.
    """

    name: str
    waits: tuple[TaskWait, ...]
    holder: Waiter | None
    held: Span | None
    holder_stack: tuple[str, ...]
    chain: tuple[TaskWait, ...]
    holders: int = 0
    found_in: tuple[str, ...] = ()
    is_kept: bool = False

    @property
    def tasks(self) -> int:
        return len({wait.task.tid for wait in self.waits})

    @property
    def waiters(self) -> str:
        """`webapp and 2 more`, by program."""
        programs = dict.fromkeys(wait.task.comm for wait in (self.longest, *self.waits))
        others = f" and {len(programs) - 1} more" if len(programs) > 1 else ""
        return f"{self.longest.task.comm}{others}"

    @property
    def longest(self) -> TaskWait:
        return max(self.waits, key=lambda wait: wait.seconds)

    @property
    def total_s(self) -> float:
        return sum(wait.seconds for wait in self.waits)

    @property
    def is_crowd(self) -> bool:
        """No task had it for as long as others waited: many took it in turn."""
        much = MUCH if self.holders <= _FEW_HOLDERS else _ALONE
        return self.holders > 1 and self.held_s < much * self.longest.seconds

    @property
    def is_stopped(self) -> bool:
        """By a signal, a debugger or the freezer: it will not go on by itself."""
        is_seen = any(wait.channel.kind == STOPPED for wait in self.chain[:1])
        return is_seen or _is_stopped(self.found_in)

    @property
    def proven(self) -> tuple[TaskWait, ...]:
        """The chain as far as it accuses: one that sleeps until another writes may never have asked
        it anything, so the other counts only if it is stopped or waits for something itself. A
        child that one waits for counts.
        """
        links = self.chain
        while links and _is_unproven(links[-1]):
            links = links[:-1]
        return links

    @property
    def last(self) -> Waiter | None:
        """Where the chain ends: who held up the holder, and so on."""
        if not self.proven:
            return self.holder
        link = self.proven[-1]
        return (
            (link.given_by or link.by or link.task) if link.channel.kind != STOPPED else link.task
        )

    @property
    def whereabouts(self) -> str | None:
        """In words where the holder was found, None if it was not."""
        return describe_place(self.found_in) if self.found_in else None

    @property
    def kept(self) -> str:
        return ", because it was not released" if self.longest.is_open else ""

    @property
    def held_s(self) -> float:
        return (self.held[1] - self.held[0]) / NS_PER_S if self.held else 0.0

    @property
    def because(self) -> str:
        """`; it waits for backend[7], which is stopped`, if that is known."""
        links, last = self.proven, self.last
        if not links or last is None or last.pid in (0, links[0].task.pid):
            return ""
        stopped = ", which is stopped" if links[-1].channel.kind == STOPPED else ""
        return f"; it waits for {last.comm}[{last.pid}]{stopped}"

    @property
    def held_up(self) -> str:
        """`, which was stopped by a signal`, if it is known what held up the holder."""
        if not self.chain:
            return ""
        first = self.chain[0]
        if self.is_stopped:
            return f", which was {first.stopped_by}"
        what = f"for core {first.cpu}" if first.is_for_a_core else first.channel.words
        return f", which itself waited {what}"

    @property
    def is_behind_disk(self) -> bool:
        """What was held is a symptom: its holder waited for a device."""
        return bool(self.chain) and self.chain[-1].channel.kind in (DEVICE, WRITEBACK)

    @property
    def to_wake(self) -> str | None:
        """What lets it go on if it, or whom it waits for, is stopped."""
        link = self.chain[-1] if self.chain else None
        if link is not None and link.channel.kind == STOPPED:
            return link.to_go_on
        if self.is_stopped and self.holder is not None:
            return f"kill -CONT {self.holder.pid}  # if it was stopped by mistake"
        return None

    def culprit(self, node: Node) -> Culprit | None:
        if self.holder is None:
            return None
        container = container_of(self.holder.cgroup, node)
        path = (self.found_in or self.holder_stack)[::-1]
        return Culprit(self.holder.comm, self.holder.pid, self.holder.cgroup, None, container, path)

    def origin(self, node: Node) -> Origin | None:
        """Where the chain ends, if that is another process; else the holder's own."""
        last, holder = self.last, self.holder
        if last is not None and holder is not None and last.pid not in (0, holder.pid):
            return process_origin(last.comm)
        return origin_of(self.culprit(node))

    def evidence(self, case: Case) -> list[Evidence]:
        longest = {wait.task.tid: wait for wait in sorted(self.waits, key=lambda w: w.seconds)}
        worst = sorted(longest.values(), key=lambda wait: -wait.seconds)[:_NAMED]
        many = "a task" if self.tasks == 1 else f"{self.tasks} tasks"
        texts = [
            f"{many} waited {self.total_s:.1f} s in all: {', '.join(w.words() for w in worst)}"
        ]
        if self.is_crowd:
            texts.append(
                f"{self.holders} tasks took it in turn, none for longer than {self.held_s:.2f} s"
            )
        elif self.holder is None:
            texts.append(f"its holder was not seen{self.kept}")
        else:
            work = self._work(case, self.holder) or self._describe_queueing(case)
            texts += self._about_holder(self.holder, work)
        return [case.evidence(text, "waits") for text in texts]

    def holder_worked(self, case: Case) -> bool:
        """It ran for much of the time that it had the lock."""
        return self.holder is not None and self._work(case, self.holder) is not None

    @property
    def is_handed_on(self) -> bool:
        """One that had waited for it gave it to another: it is a lock. What many wait for and
        others give is work.
        """
        waited = {wait.task.tid for wait in self.waits}
        return any(wait.given_by is not None and wait.given_by.tid in waited for wait in self.waits)

    @property
    def held_up_s(self) -> float:
        """How long the holder, and those it waited for, were stopped, blocked or had no core."""
        return sum(wait.seconds for wait in self.chain if wait.channel.kind not in _OWN_WILL)

    def _work(self, case: Case, holder: Waiter) -> str | None:
        """How long it ran while it had the lock, and in what, if that is much of it."""
        if self.held is None:
            return None
        held = case.samples.machine.where(None, [self.held], case.node.cores)
        ran = held.of_thread(holder.tid)
        ran_s = ran.total * ran.period_s
        if ran_s < MUCH * self.held_s:
            return None
        where = " < ".join(ran.path()[::-1][:4])
        mostly = f", mostly in {where}" if where else ""
        return f"ran for {min(ran_s, self.held_s):.2f} s of it{mostly}"

    def holder_queued(self, case: Case) -> ColumnArrays | None:
        """The waits of the holder for a core, short ones too, if they are much of the time that it
        had the lock.
        """
        rows = case.node.columns("waits")
        if self.held is None or self.holder is None or not len(rows):
            return None
        own = rows.at((rows["kind"] == RUNNABLE) & (rows["tid"] == self.holder.tid))
        own = whole_waits(own.within([self.held]))
        is_much = float(own["waited_ns"].sum()) / NS_PER_S >= MUCH * self.held_s
        return own if len(own) and is_much else None

    def _describe_queueing(self, case: Case) -> str | None:
        rows = self.holder_queued(case)
        if rows is None or self.chain:
            return None
        queued_s = float(rows["waited_ns"].sum()) / NS_PER_S
        return f"waited {queued_s:.2f} s of it for a core, again and again"

    def _about_holder(self, holder: Waiter, work: str | None) -> list[str]:
        """What it did with the lock, what it waited for itself, and where the evidence ends."""
        who = f"{holder.comm}[{holder.tid}]"
        through = f", through {' < '.join(self.holder_stack[:4])}" if self.holder_stack else ""
        end = "was not seen to release it" if self.is_kept else f"released it{through}"
        texts = [f"{who} held it for {self.held_s:.2f} s and {end}"]
        if self.longest.channel.kind == UNREAD:
            texts = [
                f"{who} has the other end, and {'has not read' if self.is_kept else 'read'} it"
            ]
        elif self.longest.channel.kind == UNSERVED:
            texts = [f"{who} has not read what was sent to it"]
        elif self.longest.channel.kind in ANSWERED:
            texts = [f"{who} ended it{through}"]
        texts += [f"meanwhile {wait.words()}" for wait in self.chain]
        texts += self._about_the_end()
        if work is not None:
            texts.append(f"{who} {work}")
        elif self.whereabouts is not None:
            texts.append(f"a look at {who} meanwhile: {self.whereabouts}")
        elif not self.chain:
            texts.append(
                f"no wait of {holder.comm} itself is recorded meanwhile: it worked, or slept on a"
                " timer, socket or pipe (not recorded)"
            )
        return texts

    def _about_the_end(self) -> list[str]:
        """Where the last of the chain was found, who is followed no further."""
        link = self.chain[-1] if self.chain else None
        if link is None or link.held_by is None or not link.held_stack:
            return []
        where = describe_place(link.held_stack)
        return [
            f"{link.held_by.comm}[{link.held_by.tid}] was looked at: {where}; the chain ends here"
        ]


def _is_unproven(link: TaskWait) -> bool:
    is_silent = link.channel.kind == UNANSWERED and link.channel.name != CHILD_TO_END
    return is_silent and not _is_stopped(link.held_stack)


def _is_stopped(stack: tuple[str, ...]) -> bool:
    return any(name in _STOPPED for name in stack)


def describe_place(stack: tuple[str, ...]) -> str:
    """In words where a task was found."""
    words = next((w for group, w in _WHEREABOUTS for n in stack if n in group), "")
    where = " < ".join(stack[:4])
    return f"{words} ({where})" if words else f"it was in {where}"
