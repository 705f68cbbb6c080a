"""Turns a failing source into gaps: one when it begins, one for the whole stretch when it or the
segment ends. No I/O.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from necroscope.model.reading import Gap, Trouble


@dataclass(slots=True)
class _Failure:
    source: str
    tables: tuple[str, ...]
    cause: str
    since_ns: int


class FailureLedger:
    """What fails now, by name. Each says why once; its stretch is repeated in every segment it
    touches.
    """

    def __init__(self) -> None:
        self._failures: dict[str, _Failure] = {}

    def causes(self) -> list[str]:
        return [f"{name}: {failure.cause}" for name, failure in self._failures.items()]

    def follow(self, source: str, troubles: Sequence[Trouble], now_ns: int) -> list[Gap]:
        """Gaps to write now: `troubles` are all that fails in this source, so that what failed
        before and is not among them has recovered.
        """
        if not troubles and not self._failures:
            return []
        names = {trouble.name for trouble in troubles}
        over = [
            name
            for name, failure in self._failures.items()
            if failure.source == source and name not in names
        ]
        gaps = [gap for name in over for gap in self._end(name, now_ns)]
        for trouble in troubles:
            gaps += self._begin(source, trouble, now_ns)
        return gaps

    def end_segment(self, now_ns: int) -> list[Gap]:
        """The stretches so far of all that fails; they go on from here in the next segment."""
        gaps = []
        for failure in self._failures.values():
            gaps += _stretch(failure, now_ns)
            failure.since_ns = now_ns
        return gaps

    def _begin(self, source: str, trouble: Trouble, now_ns: int) -> list[Gap]:
        """None if this failure is known."""
        error = trouble.error
        cause = error.facts if not error.hint else f"{error.facts} ({error.hint})"
        known = self._failures.get(trouble.name)
        if known is not None and known.cause == cause:
            return []
        gaps = self._end(trouble.name, now_ns) if known is not None else []
        self._failures[trouble.name] = _Failure(source, trouble.tables, cause, now_ns)
        return gaps + [Gap(table, now_ns, now_ns, cause) for table in trouble.tables]

    def _end(self, name: str, now_ns: int) -> list[Gap]:
        return _stretch(self._failures.pop(name), now_ns)


def _stretch(failure: _Failure, now_ns: int) -> list[Gap]:
    if now_ns <= failure.since_ns:
        return []
    return [Gap(table, failure.since_ns, now_ns, failure.cause) for table in failure.tables]
