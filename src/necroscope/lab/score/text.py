"""A score as text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from necroscope.lab.score.metrics import Accuracy, Bin, Score, Share
from necroscope.model.units import NS_PER_S, format_duration

if TYPE_CHECKING:
    from necroscope.lab.score.vary import ThresholdChange, Variation

DIAGNOSIS = "necroscope"


def score_to_text(
    scores: dict[str, Score], rows: list[dict[str, Any]], unlabelled: list[dict[str, Any]]
) -> str:
    """`rows` are the recordings that were judged, `unlabelled` the runs without a truth to judge
    by.
    """
    diagnosis = scores[DIAGNOSIS]
    width = max(len(name) for name in scores)
    lines = [*_row_lines(rows), "", f"{'AC@1, AC@3':<{width}}  {_heading(diagnosis)}"]
    for name, score in scores.items():
        lines.append(
            f"{name:<{width}}  {'  '.join(_accuracy(each) for each in score.levels.values())}"
        )
    lines += [
        "",
        "Macro means over causes; in brackets the 95 % interval (Wilson) of the runs.",
        "",
        f"{'':<{width}}  {'something named':<26}  false namings on the healthy",
        *(
            f"{name:<{width}}  {_share(score.coverage):<26}  {_share(score.false_namings)}"
            for name, score in scores.items()
        ),
        "",
        "confidence    said   right",
        *(
            f"{each.low:.1f} to {each.high:.1f}    {_mean(each):<5}  {_share(each.right)}"
            for each in diagnosis.calibration
        ),
        "",
        (
            f"to the verdict: {_seconds(diagnosis.median_s)} in the median,"
            f" {_seconds(diagnosis.longest_s)} at most"
        ),
        *(
            f"not scored: {each['scenario']} seed {each['seed']}: {each['why']}"
            for each in unlabelled
        ),
    ]
    return "\n".join(lines)


def variation_to_text(found: "Variation", factors: Sequence[float]) -> str:
    """Only the thresholds that matter, those that lose most first."""
    chosen = sum(truth.is_chosen_on for truth in found.recordings)
    others = len(found.recordings) - chosen
    rows: dict[tuple[str, str], list[ThresholdChange]] = {}
    for change in found.changes:
        rows.setdefault((change.cause, change.threshold), []).append(change)
    telling = {key: own for key, own in rows.items() if any(one.matters for one in own)}
    ordered = sorted(telling.items(), key=lambda item: (-sum(map(_weight, item[1])), item[0]))
    left_out = f"; {found.left_out} more were left out for lack of time" * bool(found.left_out)
    scales = ", ".join(f"{factor:g}" for factor in factors)
    heading = (
        f"{len(found.recordings)} recordings: the thresholds were chosen on {chosen} of them, and"
        f" not on {others}{left_out}."
    )
    legend = (
        f"Each threshold alone times {scales}; -: right verdict lost, +: gained, !: another cause"
        " is named wrongly."
    )
    lines = [line for key, own in ordered for line in _threshold_lines(key, own)]
    quiet = f"{len(rows) - len(telling)} of {len(rows)} thresholds change no verdict in this range."
    return "\n".join([heading, legend, "", *lines, quiet])


def _threshold_lines(key: tuple[str, str], changes: "Sequence[ThresholdChange]") -> list[str]:
    cause, name = key
    parts = [
        f"    x{change.factor:<5g} "
        + "  ".join(
            f"{mark}{recording}"
            for mark, names in (
                ("-", change.lost),
                ("+", change.gained),
                ("!", change.false_namings),
            )
            for recording in names
        )
        for change in changes
        if change.matters
    ]
    return [f"{cause}: {name.replace('_', ' ')} = {changes[0].value:g}", *parts, ""]


def _weight(change: "ThresholdChange") -> int:
    return len(change.lost) + len(change.gained) + len(change.false_namings)


def _row_lines(rows: list[dict[str, Any]]) -> list[str]:
    """One a recording: what it was, what was said."""
    width = max((len(row["scenario"]) for row in rows), default=0)
    lines = []
    for row in rows:
        judged = "right" if row["is_right"] else "WRONG"
        lines.append(
            f"{judged}  {row['scenario']:<{width}}  seed {row['seed']:<6} said"
            f" {row['said'] or 'nothing'}"
        )
    return lines


def _heading(score: Score) -> str:
    return "  ".join(f"{name:<34}" for name in score.levels).rstrip()


def _accuracy(each: Accuracy) -> str:
    low, high = each.first.interval or (0.0, 0.0)
    bracket = f"({low:.0%}–{high:.0%} of {each.first.of})" if each.first.of else ""
    return f"{_percent(each.macro_first):>5} {_percent(each.macro_first_three):>5} {bracket:<22}"


def _share(share: Share) -> str:
    low, high = share.interval or (0.0, 0.0)
    return f"{share.hits} of {share.of}" + (f" ({low:.0%}–{high:.0%})" if share.of else "")


def _mean(each: Bin) -> str:
    return "–" if each.confidence is None else f"{each.confidence:.2f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else format_duration(round(value * NS_PER_S))
