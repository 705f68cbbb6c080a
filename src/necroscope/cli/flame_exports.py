"""Answers of `necroscope flame` in other viewers' formats."""

from collections.abc import Callable
from functools import partial
from typing import BinaryIO, Final

from necroscope.cli.flame_formats import Notes, TextStyle
from necroscope.cli.flame_question import Question
from necroscope.interchange.writers.firefox import write_firefox
from necroscope.interchange.writers.folded import write_folded
from necroscope.interchange.writers.otlp import write_otlp
from necroscope.interchange.writers.pprof import write_pprof
from necroscope.interchange.writers.speedscope import write_speedscope
from necroscope.interchange.writers.window import WindowFacts
from necroscope.stacks.samples import SampleTables
from necroscope.store.groups import GroupBy


def _write_folded(question: Question, out: BinaryIO, _style: TextStyle) -> Notes:
    tree = question.flame()
    write_folded(tree, out)
    return tree.left_out


def _write_samples(
    write: Callable[[Question, SampleTables, WindowFacts, BinaryIO], None],
    question: Question,
    out: BinaryIO,
    _style: TextStyle,
) -> Notes:
    found = question.samples()
    facts = WindowFacts(question.node, found.from_ns, found.to_ns, left_out=tuple(found.left_out))
    write(question, found.tables, facts, out)
    return found.left_out


def _speedscope(
    question: Question, tables: SampleTables, facts: WindowFacts, out: BinaryIO
) -> None:
    write_speedscope(
        tables, facts, out, by="thread" if question.group_by == (GroupBy.THREAD,) else "core"
    )


def _firefox(question: Question, tables: SampleTables, facts: WindowFacts, out: BinaryIO) -> None:
    events = question.store.rows("events", facts.from_ns, facts.to_ns)
    if question.group_by == (GroupBy.CORE,):
        write_firefox(tables, facts, out, events=events, by="core")
    else:
        write_firefox(
            tables, facts, out, events=events, by="thread" if question.group_by else "both"
        )


WRITERS: Final = {
    "folded": _write_folded,
    "speedscope": partial(_write_samples, _speedscope),
    "pprof": partial(_write_samples, lambda _, *rest: write_pprof(*rest)),
    "otlp": partial(_write_samples, lambda _, *rest: write_otlp(*rest)),
    "firefox": partial(_write_samples, _firefox),
}
