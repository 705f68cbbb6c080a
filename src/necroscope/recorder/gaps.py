"""Turns a failing source into gaps: one when it begins, one for the whole stretch when it or the
segment ends. No I/O.
"""

from dataclasses import dataclass

from necroscope.model.reading import Gap


@dataclass(slots=True)
class _Failure:
    tables: tuple[str, ...]
    cause: str
    since_ns: int


class FailureLedger:
    """Sources that fail now. Each says why once; its stretch is told again in every segment it
    touches.
    """

    def __init__(self) -> None:
        self._failures: dict[str, _Failure] = {}

    def __contains__(self, source: str) -> bool:
        return source in self._failures

    def causes(self) -> list[str]:
        return [f"{name}: {failure.cause}" for name, failure in self._failures.items()]

    def failed(self, source: str, tables: tuple[str, ...], cause: str, now_ns: int) -> list[Gap]:
        """Gaps to write now; empty if this failure is known."""
        known = self._failures.get(source)
        if known is not None and known.cause == cause:
            return []
        gaps = self.recovered(source, now_ns)
        self._failures[source] = _Failure(tables, cause, now_ns)
        return gaps + [Gap(table, now_ns, now_ns, cause) for table in tables]

    def recovered(self, source: str, now_ns: int) -> list[Gap]:
        failure = self._failures.pop(source, None)
        return _stretch(failure, now_ns) if failure is not None else []

    def end_segment(self, now_ns: int) -> list[Gap]:
        """The stretches so far of all that fails; they go on from here in the next segment."""
        gaps = []
        for failure in self._failures.values():
            gaps += _stretch(failure, now_ns)
            failure.since_ns = now_ns
        return gaps


def _stretch(failure: _Failure, now_ns: int) -> list[Gap]:
    if now_ns <= failure.since_ns:
        return []
    return [Gap(table, failure.since_ns, now_ns, failure.cause) for table in failure.tables]
