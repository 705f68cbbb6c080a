"""When to start another run, and when the stakeout is over: decisions without I/O."""

from dataclasses import dataclass

from necroscope.stakeout.outcome import FAILURE, EndedBy, Ending, Outcome


@dataclass(frozen=True, slots=True)
class Plan:
    """`until` holds event kinds and may hold `failure`; with `counts_all` they are counted and end
    nothing.
    """

    until: frozenset[str]
    limit_ns: int | None = None
    repeat: int | None = None
    parallel: int = 1
    counts_all: bool = False

    def may_start(self, outcome: Outcome, under_way: int) -> bool:
        started = len(outcome.runs) + under_way
        return under_way < self.parallel and (self.repeat is None or started < self.repeat)

    def over(self, outcome: Outcome, under_way: int, elapsed_ns: int) -> Ending | None:
        """Why it is over, or None. Runs that are still under way then are stopped."""
        if not self.counts_all:
            if outcome.caught:
                return Ending(EndedBy.EVENT, f"caught {outcome.caught[-1].kind}")
            if FAILURE in self.until and outcome.failures:
                number = next(run.number for run in outcome.runs if run.is_failure)
                return Ending(EndedBy.FAILURE, f"run {number} failed")
        if self.limit_ns is not None and elapsed_ns >= self.limit_ns:
            return Ending(EndedBy.TIME, "the time is over")
        if self.repeat is not None and not under_way and len(outcome.runs) >= self.repeat:
            return Ending(EndedBy.RUNS, "all runs are done")
        return None

    def found(self, outcome: Outcome) -> bool:
        """Whether what was waited for happened, once or more."""
        return bool(outcome.caught) or (FAILURE in self.until and outcome.failures > 0)
