"""How much each threshold matters: it is scaled, the cause is weighed again on every recording, and
verdicts that come or go are counted.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import necroscope
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Cause
from necroscope.analysis.causes import all_causes
from necroscope.analysis.engine import cases
from necroscope.analysis.incidents import incident_of, weigh_all
from necroscope.analysis.quality import shortcomings
from necroscope.analysis.report import UNKNOWN, Incident
from necroscope.analysis.verdict import NAMED, Contender, weigh
from necroscope.lab.label import LABEL_FILE, read_label
from necroscope.lab.run import Say
from necroscope.lab.scenario import LabError
from necroscope.lab.score.guess import is_in_time
from necroscope.model.span import Span
from necroscope.store.query import Store

# Recordings of other kernels and machines: their truth was written down after the thresholds were
# chosen.
TRUTH_FILE: Final = "truth.json"
_LONGEST_S: Final = 600.0
_STEPS: Final = 4
# Closer to 1 is the threshold itself.
_SAME: Final = 0.02


@dataclass(frozen=True, slots=True)
class LabelledRecording:
    """What was provoked in a recording (None: nothing), and whether thresholds were chosen on
    it.
    """

    directory: Path
    cause: str | None
    tolerates: frozenset[str]
    is_chosen_on: bool
    label: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ThresholdChange:
    """One threshold at one factor: the recordings whose right verdict is lost or gained, and those
    in which a wrong cause is named that was not.
    """

    cause: str
    threshold: str
    value: float
    factor: float
    lost: list[str] = field(default_factory=list)
    gained: list[str] = field(default_factory=list)
    false_namings: list[str] = field(default_factory=list)

    @property
    def matters(self) -> bool:
        return bool(self.lost or self.gained or self.false_namings)


@dataclass(frozen=True, slots=True)
class Variation:
    """`left_out` are recordings for which there was no time."""

    recordings: list[LabelledRecording]
    left_out: int
    changes: list[ThresholdChange]

    def as_json(self) -> dict[str, Any]:
        return {
            "recordings": [
                {
                    "name": truth.directory.name,
                    "cause": truth.cause,
                    "thresholds_were_chosen_on_it": truth.is_chosen_on,
                }
                for truth in self.recordings
            ],
            "left_out": self.left_out,
            "changes": [
                {name: getattr(change, name) for name in ThresholdChange.__slots__}
                for change in self.changes
            ],
        }


def truths(directory: Path) -> list[LabelledRecording]:
    """Of every recording below a directory that has a label, or the truth of a guest."""
    found = []
    for path in sorted(directory.rglob(LABEL_FILE)):
        label = read_label(path.parent)
        tolerates = frozenset(label.get("tolerates", ()))
        found.append(LabelledRecording(path.parent, label["cause"], tolerates, True, label))
    for path in sorted(directory.rglob(TRUTH_FILE)):
        cause = json.loads(path.read_text("utf-8"))["verdict"]["cause"]
        known = None if cause == UNKNOWN else cause
        found.append(LabelledRecording(path.parent, known, frozenset(), False))
    if not found:
        raise LabError(f"no recording in {directory} has a label", "give another --dir")
    return found


def kept_recordings() -> Path:
    """Those of this source tree's tests."""
    directory = Path(necroscope.__file__).parents[2] / "tests/data"
    if not directory.is_dir():
        facts = "the recordings of the tests are not installed with necroscope"
        raise LabError(facts, "run it in the source tree, or give --dir")
    return directory


def parse_factors(text: str) -> list[float]:
    """`0.7..1.4`: both ends and what lies evenly between them, without 1."""
    match = re.fullmatch(r"(\d*\.?\d+)\.\.(\d*\.?\d+)", text)
    low, high = (float(match[1]), float(match[2])) if match else (0.0, 0.0)
    if not 0.01 <= low < high <= 100:
        raise LabError(f"'{text}' is not a valid range of factors", "for example --vary 0.7..1.4")
    points = [round(low * (high / low) ** (step / _STEPS), 2) for step in range(_STEPS + 1)]
    return [point for point in points if abs(point - 1) > _SAME]


def vary(
    known: Sequence[LabelledRecording],
    factors: Sequence[float],
    say: Say,
    clock: Callable[[], float] = time.monotonic,
) -> Variation:
    """Recording by recording, so that memory holds one, for ten minutes at most."""
    changes = {
        (cause.slug, name, factor): ThresholdChange(cause.slug, name, limit.value, factor)
        for cause in all_causes()
        for name, limit in cause.limits
        for factor in factors
    }
    end = clock() + _LONGEST_S
    for place, truth in enumerate(known):
        if clock() > end:
            return Variation(list(known[:place]), len(known) - place, list(changes.values()))
        say(f"{truth.directory.name}, {place + 1} of {len(known)}")
        for key, effect in _effects(truth, factors):
            getattr(changes[key], effect).append(truth.directory.name)
    return Variation(list(known), 0, list(changes.values()))


def _effects(
    truth: LabelledRecording, factors: Sequence[float]
) -> Iterator[tuple[tuple[str, str, float], str]]:
    """For each threshold and factor which list of the change this recording belongs to, if any."""
    found = [(case, weigh_all(case)) for case in _cases(truth.directory)]
    usual = [incident_of(case, contenders) for case, contenders in found]
    was_right, was_false = _judge(truth, usual)
    for cause in all_causes():
        for name, _ in cause.limits:
            for factor in factors:
                others = [
                    _again(case, contenders, incident, cause, name, factor)
                    for (case, contenders), incident in zip(found, usual, strict=True)
                ]
                is_right, is_false = _judge(truth, others)
                key = cause.slug, name, factor
                if is_false - was_false:
                    yield key, "false_namings"
                if is_right != was_right:
                    yield key, "gained" if is_right else "lost"


def _again(
    case: Case,
    contenders: Sequence[Contender],
    usual: Incident | None,
    cause: Cause,
    name: str,
    factor: float,
) -> Incident | None:
    """The incident with one cause weighed by another threshold; the same one where that says the
    same.
    """
    before = next((one for one in contenders if one.cause is cause), None)
    after = weigh(case, cause, cause.limits.scale(name, factor), shortcomings(case))
    if (before and before.confidence) == (after and after.confidence):
        return usual
    others = [one for one in contenders if one.cause is not cause]
    return incident_of(case, [*others, *([after] if after else [])])


def _judge(truth: LabelledRecording, incidents: Sequence[Incident | None]) -> tuple[bool, set[str]]:
    """Whether the surest verdict on what was provoked is right, and the wrong causes named."""
    named = [
        one
        for one in incidents
        if one is not None and one.is_wrong and one.verdict.confidence >= NAMED
    ]
    label = truth.label
    own = [
        one
        for one in named
        if label is None or truth.cause is None or is_in_time(one.from_ns, one.to_ns, label)
    ]
    best = max(own, key=lambda one: one.verdict.confidence, default=None)
    wrong = {one.verdict.cause for one in own} - {truth.cause} - truth.tolerates
    return best is not None and best.verdict.cause == truth.cause, wrong


def _cases(directory: Path) -> list[Case]:
    store = Store.open(directory)
    info = store.info()
    if info.from_ns is None or info.to_ns is None:
        return []
    return list(cases(store, Span(info.from_ns, info.to_ns + 1), []))
