"""Containers that are removed and re-created again and again: a crash loop that no restart counter
reports, because each container is a new one.

They are known by what stays the same: the name, else the image where every one has another name
and they come one at a time in a steady rhythm. Who makes them comes from events of kind
`container_made`.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from necroscope.analysis.event_fields import event_fields
from necroscope.model.units import NS_PER_S, format_duration

START, DEATH, MADE = "container_start", "container_die", "container_made"
LEAST_LIVES: Final = 3
# Two starts of a rhythm are as far apart as the others, give or take.
_UNSTEADY: Final = 0.35
_SIGNALLED: Final = 128
_LAST_SIGNAL: Final = 64


@dataclass(slots=True)
class ContainerLife:
    """From a start to a death; None is not known, or has not come."""

    container: str
    name: str
    image: str | None
    started_ns: int
    ended_ns: int | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class RecreationLoop:
    """`name` is the containers' own, or None where each has another. `unit` makes them, and
    `known_by` says how that is known.
    """

    name: str | None
    image: str | None
    containers: tuple[str, ...]
    period_ns: int
    age_ns: int | None
    exit_code: int | None
    failed: int
    ended: int
    last_ns: int
    unit: str | None = None
    known_by: str | None = None

    @property
    def title(self) -> str:
        return self.name or f"of image {self.image}"

    @property
    def is_failing(self) -> bool:
        """A job that runs each minute and ends well is not a crash loop."""
        return self.failed > self.ended / 2

    def describe(self) -> str:
        """The rhythm: how often, and how old one gets."""
        age = f", always {format_duration(self.age_ns)} old at its end" if self.age_ns else ""
        lives = len(self.containers)
        return f"re-created every {format_duration(self.period_ns)}, {lives} times{age}"

    def describe_end(self) -> str | None:
        """Why it dies, as far as its exit code tells."""
        if self.exit_code is None:
            return None
        signal = self.exit_code - _SIGNALLED
        how = f": signal {signal}" if 0 < signal <= _LAST_SIGNAL else ""
        return f"exit code {self.exit_code}{how} in {self.failed} of {self.ended} ends"


def find_loops(
    events: Iterable[Mapping[str, Any]], least_lives: int = LEAST_LIVES
) -> list[RecreationLoop]:
    """From rows of `events` in order of time, the most lives first. Two lives of a name are enough
    where something else tells that there were more.
    """
    lives, makers = _read(events)
    by_name: dict[str, list[ContainerLife]] = defaultdict(list)
    by_image: dict[str, list[ContainerLife]] = defaultdict(list)
    for life in lives.values():
        by_name[life.name].append(life)
    for life in (own[0] for own in by_name.values() if len(own) == 1):
        if life.image:
            by_image[life.image].append(life)
    found = [_loop(name, own, makers) for name, own in by_name.items() if len(own) >= least_lives]
    found += [_loop(None, own, makers) for own in by_image.values() if _is_rhythm(own)]
    return sorted(found, key=lambda loop: -len(loop.containers))


def names_of(events: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What each container is called that was started."""
    return {life.container: life.name for life in _read(events)[0].values() if life.name}


def _read(
    events: Iterable[Mapping[str, Any]],
) -> tuple[dict[str, ContainerLife], dict[str, tuple[str, str]]]:
    """A container that is restarted under its own id has one life here: its counter tells."""
    lives: dict[str, ContainerLife] = {}
    makers: dict[str, tuple[str, str]] = {}
    for event in events:
        if event["kind"] not in (START, DEATH, MADE):
            continue
        fields = event_fields(event)
        container, name = str(fields.get("container", "")), str(fields.get("name", ""))
        if event["kind"] == MADE:
            makers[name] = (str(fields.get("unit", "")), str(fields.get("how", "")))
        elif event["kind"] == START and container and name:
            image = fields.get("image")
            lives.setdefault(
                container,
                ContainerLife(container, name, str(image) if image else None, int(event["time"])),
            )
        elif event["kind"] == DEATH and container in lives:
            lives[container].ended_ns = int(event["time"])
            code = fields.get("exit_code")
            lives[container].exit_code = code if isinstance(code, int) else None
    return lives, makers


def _gaps_ns(lives: list[ContainerLife]) -> list[int]:
    starts = sorted(life.started_ns for life in lives)
    return [b - a for a, b in itertools.pairwise(starts)]


def _is_rhythm(lives: list[ContainerLife]) -> bool:
    """One at a time, at even distances: a farm that runs many of an image has neither."""
    if len(lives) <= LEAST_LIVES:
        return False
    ordered = sorted(lives, key=lambda life: life.started_ns)
    is_alone = all(
        before.ended_ns is not None and before.ended_ns <= after.started_ns
        for before, after in itertools.pairwise(ordered)
    )
    gaps = _gaps_ns(lives)
    usual = median(gaps)
    return is_alone and all(abs(gap - usual) <= _UNSTEADY * usual for gap in gaps)


def _loop(
    name: str | None, lives: list[ContainerLife], makers: Mapping[str, tuple[str, str]]
) -> RecreationLoop:
    ends = [life for life in lives if life.ended_ns is not None]
    ages = [life.ended_ns - life.started_ns for life in ends if life.ended_ns is not None]
    failed = [life.exit_code for life in ends if life.exit_code]
    made_by = [makers[life.name] for life in lives if makers.get(life.name, ("", ""))[0]]
    unit, known_by = made_by[-1] if made_by else (None, None)
    return RecreationLoop(
        name,
        lives[-1].image,
        tuple(life.container for life in lives),
        round(median(_gaps_ns(lives))),
        _whole_seconds(round(median(ages))) if ages else None,
        Counter(failed).most_common(1)[0][0] if failed else None,
        len(failed),
        len(ends),
        max(life.started_ns for life in lives),
        unit,
        known_by,
    )


def _whole_seconds(age_ns: int) -> int:
    """Of what lives longer: to the tenth of a second no two lives are the same."""
    return round(age_ns / NS_PER_S) * NS_PER_S if age_ns >= 2 * NS_PER_S else age_ns
