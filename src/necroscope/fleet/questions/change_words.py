"""What a change did, in a sentence: `since the unit is disabled: 0 nic_reset on 412 nodes in 2,884
node-days, expected 63`.
"""

from necroscope.fleet.questions.change_rates import Rates


def change_summary(state: str, about: str | None, changed: Rates, others: Rates | None) -> str:
    if about is None:
        return f"{state} on {changed.nodes} nodes; see how their jobs ended before and after"
    head = (
        f"since {state}: {changed.times_after} {about} on {changed.nodes} nodes in"
        f" {_days(changed.days_after)}"
    )
    if changed.expected is None:
        return f"{head}; nothing was observed before, so nothing can be expected"
    told = f"{head}, expected {changed.expected:.0f} from the {_days(changed.days_before)} before"
    interval = changed.interval
    if interval is not None:
        high = "without bound" if interval.high == float("inf") else f"{interval.high:.0%}"
        told += f": the rate is {interval.low:.0%} to {high} of what it was (95 %)"
    if others is not None and others.expected is not None:
        beside = f"{others.times_after}, expected {others.expected:.0f}"
        told += f"; on {others.nodes} nodes without the change over the same time: {beside}"
    return told


def _days(days: float) -> str:
    return f"{days:,.0f} node-days" if days >= 10 else f"{days:.1f} node-days"
