"""Incidents of a lake as SQL: the same one may be there by push and by sweep, in several states."""

from typing import Final

from necroscope.fleet.lake_tables import MERGED_CAUSE

# Newest analysis of each incident, without those that became part of another.
NEWEST_INCIDENTS: Final = (
    "SELECT * FROM incidents QUALIFY row_number() OVER (PARTITION BY cluster, node, id ORDER BY"
    f" analysed_ns DESC, cause) = 1 AND cause <> '{MERGED_CAUSE}'"
)
