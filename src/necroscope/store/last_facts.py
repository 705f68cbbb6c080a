"""The facts of a recording as they stood at its end: what told that node from others."""

from typing import Final

from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store

# Each segment begins with all facts but packages, which are reported hourly.
_LOOK_BACK_NS: Final = 75 * 60 * NS_PER_S


def last_facts(store: Store) -> dict[tuple[str, str], str]:
    """By kind and name; empty where none were recorded."""
    from_ns, to_ns = store.span()
    rows = store.rows(
        "facts", max(from_ns, to_ns - _LOOK_BACK_NS), to_ns + 1, columns=("kind", "name", "value")
    )
    found: dict[tuple[str, str], str] = {}
    for row in rows.to_pylist():
        key = row["kind"], row["name"]
        if row["value"] is None:
            found.pop(key, None)
        else:
            found[key] = row["value"]
    return found
