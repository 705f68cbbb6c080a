"""What the nodes' own verdicts say of a difference: whose doing it was, by mechanism and not by
counts.

Facts that sit on the very same nodes cannot be told apart by counting. A verdict names its origin,
and the chain that leads to it (container, unit, package, image), from what the kernel did on that
one node. A fact that is on the chain of the affected nodes' verdicts is what made them fail; the
others only sit there too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from necroscope.fleet.cohorts.candidates import PredictiveDifference
from necroscope.fleet.cohorts.columns import Flags
from necroscope.fleet.cohorts.fact_rules import Predicate

# One thing on a verdict's chain: its kind (unit, container, image, ...) and its name.
Link = tuple[str, str]

# Two verdicts can be wrong in the same way more easily than three.
_LEAST_NAMED: Final = 3
# Of the affected nodes that have the difference: with any verdict, and of those with this origin.
_LEAST_SHOWN: Final = 0.5
_LEAST_AGREEING: Final = 2 / 3
# Of those that name a thing: on nodes that do not have it. One can be wrong; where more are,
# verdicts do not go by what is on the node, and their agreement elsewhere is worth nothing.
_MOST_IMPOSSIBLE: Final = 0.1

_LINK_KINDS: Final = {
    "container": "container",
    "image": "image",
    "package": "package",
    "module": "module",
    "sysctl": "setting",
    "thp": "setting",
    "config_file": "file",
    "cpuset": "cgroup",
    "pinning": "process",
}


@dataclass(frozen=True, slots=True)
class Origins:
    """Of the nodes' verdicts: `judged` are the nodes that have any, `named` those that name a
    link.
    """

    judged: Flags
    named: Mapping[Link, Flags]

    @classmethod
    def of(cls, nodes: int, chains: Mapping[int, Iterable[Link]]) -> "Origins":
        """By the node's place: all that its verdicts name."""
        judged = np.zeros(nodes, np.bool_)
        named: dict[Link, Flags] = {}
        for node, chain in chains.items():
            judged[node] = True
            for link in chain:
                named.setdefault(link, np.zeros(nodes, np.bool_))[node] = True
        return cls(judged, named)

    def chosen(self, kept: Flags) -> "Origins":
        """Of some of the nodes."""
        return Origins(self.judged[kept], {link: flags[kept] for link, flags in self.named.items()})


@dataclass(frozen=True, slots=True)
class Mechanism:
    """The verdicts of `named` of the `judged` affected nodes that have one name `link`."""

    link: Link
    named: int
    judged: int
    affected: int
    chain: tuple[Link, ...]

    @property
    def words(self) -> str:
        others = [" ".join(link) for link in self.chain]
        along = f" (along with {', '.join(others)})" if others else ""
        return (
            f"the verdicts of {self.named} of {self.judged} affected nodes that have one name"
            f" {' '.join(self.link)} as the origin or on its chain{along}"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.link[0],
            "name": self.link[1],
            "named": self.named,
            "judged": self.judged,
            "affected": self.affected,
            "chain": [{"kind": kind, "name": name} for kind, name in self.chain],
            "text": self.words,
        }


def link_of(predicate: Predicate) -> Link | None:
    """The thing that a fact is about, as verdicts name things."""
    kind, name = predicate.kind, predicate.name
    if kind.startswith("unit_"):
        return "unit", name
    if kind in ("nic", "interrupt"):
        return "device", name.split(" ", 1)[0]
    if kind == "executable":
        return "process", name.rsplit("/", 1)[-1]
    return (_LINK_KINDS[kind], name) if kind in _LINK_KINDS else None


def by_mechanism(
    rivals: Iterable[PredictiveDifference], affected: Flags, origins: Origins
) -> tuple[PredictiveDifference, PredictiveDifference | None, Mechanism] | None:
    """Of differences that counts cannot tell apart: the facts of the one that the verdicts name,
    the other facts of the same nodes, and what the verdicts say.
    """
    for rival in rivals:
        found = named_by_verdicts(rival, affected, origins)
        if found is None:
            continue
        links = {found.link, *found.chain}
        chosen = tuple(each for each in rival.facts if link_of(each) in links)
        others = tuple(each for each in rival.predicates if each not in chosen)
        return (
            replace(rival, predicates=chosen),
            replace(rival, predicates=others) if others else None,
            found,
        )
    return None


def named_by_verdicts(
    difference: PredictiveDifference, affected: Flags, origins: Origins
) -> Mechanism | None:
    """What most verdicts of the affected nodes name, if a fact of the difference is about it."""
    links = dict.fromkeys(link for each in difference.facts if (link := link_of(each)))
    hit = affected & difference.has
    found = [
        mechanism
        for link in links
        if (mechanism := _weigh(link, hit, difference.has, origins)) is not None
    ]
    return max(found, key=lambda each: each.named, default=None)


def _weigh(link: Link, hit: Flags, has: Flags, origins: Origins) -> Mechanism | None:
    flags = origins.named.get(link)
    if flags is None:
        return None
    named, judged = int((flags & hit).sum()), int((origins.judged & hit).sum())
    is_heard = judged >= _LEAST_SHOWN * int(hit.sum())
    is_agreed = named >= max(_LEAST_NAMED, _LEAST_AGREEING * judged)
    is_possible = int((flags & ~has).sum()) <= _MOST_IMPOSSIBLE * named
    if not (is_heard and is_agreed and is_possible):
        return None
    chain = [
        other
        for other, others in origins.named.items()
        if other != link and int((others & flags & hit).sum()) >= _LEAST_AGREEING * named
    ]
    return Mechanism(link, named, judged, int(hit.sum()), tuple(sorted(chain)))


def most_named(affected: Flags, origins: Origins) -> tuple[Link, int, int] | None:
    """What most verdicts of the affected nodes name, whether or not a fact is about it: with how
    many of how many.
    """
    judged = int((origins.judged & affected).sum())
    counts = {link: int((flags & affected).sum()) for link, flags in origins.named.items()}
    link = max(counts, key=lambda each: (counts[each], each), default=None)
    if link is None or counts[link] < max(_LEAST_NAMED, _LEAST_AGREEING * judged):
        return None
    return link, counts[link], judged
