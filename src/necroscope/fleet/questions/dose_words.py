"""Numbers of nodes in words: which size they begin to fail at, how sure that is, and which of
several numbers explains the others.
"""

from collections.abc import Sequence
from typing import Final

from necroscope.fleet.cohorts.dose import Dose, DoseRelation
from necroscope.fleet.gauge_series import DAY_S, UPTIME
from necroscope.model.units import format_bytes

_BYTES: Final = "_bytes"
_POPULATION: Final = "population:"


def gauge_words(name: str) -> str:
    """`dead_cgroups` as people say it."""
    if name == UPTIME:
        return "uptime"
    kind = name.removeprefix(_POPULATION)
    return kind.replace("-", " ") if kind != name else name.removesuffix(_BYTES).replace("_", " ")


def _subject(name: str) -> str:
    if name == UPTIME:
        return "the uptime"
    return f"the {'size' if name.endswith(_BYTES) else 'number'} of {gauge_words(name)}"


def size_words(name: str, size: float) -> str:
    """Three digits: rows are some percent apart."""
    if name == UPTIME:
        return f"{size / DAY_S:.1f} d" if size >= DAY_S else f"{size / 3600:.1f} h"
    if name.endswith(_BYTES):
        return format_bytes(size)
    return f"{float(f'{size:.3g}'):,.0f}" if abs(size) >= 100 else f"{size:.3g}"


def amount_words(name: str, size: float) -> str:
    """`58,000 dead cgroups`, `6.1 d of uptime`, `12 GiB of slab`."""
    is_of = name == UPTIME or name.endswith(_BYTES)
    return f"{size_words(name, size)} {'of ' if is_of else ''}{gauge_words(name)}"


def threshold_words(dose: Dose) -> str:
    """`above 58,000 dead cgroups [56,200, 59,900]`."""
    if dose.name == UPTIME:
        side = "after" if dose.is_above else "within"
    else:
        side = "above" if dose.is_above else "below"
    low, high = (size_words(dose.name, size) for size in (dose.low, dose.high))
    return f"{side} {amount_words(dose.name, dose.threshold)} [{low}, {high}]"


def dose_summary(doses: Sequence[Dose], about: str) -> str | None:
    """One sentence; None where no number matters."""
    if not doses:
        return None
    first = doses[0]
    verb = "begins" if first.is_above else "happens"
    text = f"{about} {verb} {threshold_words(first)}"
    explained = [dose for dose in doses[1:] if dose.relation is DoseRelation.EXPLAINED]
    if explained:
        also = ", ".join(map(threshold_words, explained))
        names = " and ".join(_subject(dose.name) for dose in explained)
        text += f", or {also}: {_subject(first.name)} explains {names}"
    same = [dose for dose in doses[1:] if dose.relation is DoseRelation.INSEPARABLE]
    if same:
        text += f"; these nodes cannot tell that from {', '.join(map(threshold_words, same))}"
    own = [dose for dose in doses[1:] if dose.relation is DoseRelation.OF_ITS_OWN]
    if own:
        text += f"; {', '.join(map(threshold_words, own))} matters of its own"
    return text


def rate_words(dose: Dose) -> str:
    """How often nodes are hit on either side."""
    return (
        f"{threshold_words(dose)}: {dose.rate_beyond:.2g} first hits per node-day, and"
        f" {dose.rate_within:.2g} otherwise ({dose.hits} hits in {dose.days:,.0f} node-days)"
    )
