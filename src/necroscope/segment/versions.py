"""Schema versions: what a stored table looked like in each, and one upgrader per step to the next.

To change the schema: raise `SCHEMA_VERSION` in `model/tables.py`, put the tables as they were into
`LAYOUTS`, add the upgrader of that step, and keep a recording of the old version in
`tests/data/formats/`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from necroscope.errors import RecordingError
from necroscope.model.tables import SCHEMA_VERSION, TABLES, Table

if TYPE_CHECKING:
    import pyarrow as pa

    Upgrader = Callable[[str, pa.Table], pa.Table]

# The tables of each version, needed to read its journals.
LAYOUTS: Final[dict[int, Mapping[str, Table]]] = {SCHEMA_VERSION: TABLES}
# UPGRADERS[n] takes a table's name and its rows of version n to version n + 1.
UPGRADERS: Final[dict[int, "Upgrader"]] = {}


def check_version(version: int) -> None:
    if version not in LAYOUTS:
        facts = f"the recording has schema {version}, this necroscope knows up to {max(LAYOUTS)}"
        raise RecordingError(facts, "upgrade necroscope to open it")


def upgrade_rows(name: str, rows: "pa.Table", version: int) -> "pa.Table":
    """Rows stored by `version`, as the newest version stores them."""
    for step in range(version, max(LAYOUTS)):
        rows = UPGRADERS[step](name, rows)
    return rows
