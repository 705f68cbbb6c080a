"""`necroscope flame` in the formats of other viewers."""

from collections.abc import Callable
from functools import partial
from typing import BinaryIO, Final, Literal

from necroscope.cli.flame_outputs import Notes, TextStyle, Writer
from necroscope.cli.flame_question import FlameQuestion
from necroscope.interchange.writers.firefox import write_firefox
from necroscope.interchange.writers.folded import write_folded
from necroscope.interchange.writers.otlp import write_otlp
from necroscope.interchange.writers.pprof import write_pprof
from necroscope.interchange.writers.speedscope import write_speedscope
from necroscope.interchange.writers.trace import write_trace
from necroscope.interchange.writers.window import WindowFacts
from necroscope.model.wait_rows import REACH_NS
from necroscope.stacks.samples import SampleTables
from necroscope.store.choices import GroupBy


def _write_folded(question: FlameQuestion, out: BinaryIO, _style: TextStyle) -> Notes:
    tree = question.flame()
    write_folded(tree, out)
    return tree.left_out


def _write_samples(
    write: Callable[[FlameQuestion, SampleTables, WindowFacts, BinaryIO], None],
    question: FlameQuestion,
    out: BinaryIO,
    _style: TextStyle,
) -> Notes:
    found = question.samples()
    facts = WindowFacts(question.node, found.from_ns, found.to_ns, left_out=tuple(found.left_out))
    write(question, found.tables, facts, out)
    return found.left_out


def _write_speedscope(
    question: FlameQuestion, tables: SampleTables, facts: WindowFacts, out: BinaryIO
) -> None:
    is_by_thread = question.group_by == (GroupBy.THREAD,)
    write_speedscope(tables, facts, out, by="thread" if is_by_thread else "core")


def _write_firefox(
    question: FlameQuestion, tables: SampleTables, facts: WindowFacts, out: BinaryIO
) -> None:
    events = question.store.rows("events", facts.from_ns, facts.to_ns)
    tracks: dict[tuple[GroupBy, ...], Literal["core", "thread", "both"]] = {
        (): "both",
        (GroupBy.CORE,): "core",
        (GroupBy.THREAD,): "thread",
    }
    write_firefox(tables, facts, out, events=events, by=tracks[question.group_by])


def _write_trace(
    question: FlameQuestion, tables: SampleTables, facts: WindowFacts, out: BinaryIO
) -> None:
    """Of the cores that were asked for; a wait may end after the window that it began in."""
    store, cpus = question.store, question.selection.cpus
    write_trace(
        tables,
        facts,
        out,
        cores=store.rows("cores", facts.from_ns, facts.to_ns, cpus),
        waits=store.rows("waits", facts.from_ns, facts.to_ns + REACH_NS, cpus),
        events=store.rows("events", facts.from_ns, facts.to_ns),
    )


WRITERS: Final[dict[str, Writer]] = {
    "folded": _write_folded,
    "speedscope": partial(_write_samples, _write_speedscope),
    "pprof": partial(_write_samples, lambda _, *rest: write_pprof(*rest)),
    "otlp": partial(_write_samples, lambda _, *rest: write_otlp(*rest)),
    "firefox": partial(_write_samples, _write_firefox),
    "trace": partial(_write_samples, _write_trace),
}
