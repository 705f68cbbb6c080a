"""How each kind of act is undone."""

from typing import Final

from necroscope.treat.kernel_settings import SETTING, undo_setting
from necroscope.treat.rehome import (
    SEGMENT_PAGES,
    TEMPORARY_FILE,
    undo_segment_pages,
    undo_temporary_file,
)
from necroscope.treat.treatment import UndoKind, UndoKinds
from necroscope.treat.units import UNIT, undo_unit

# A mask is a link on disk. A reboot starts a unit that was only stopped, and the undo starts none
# that runs.
UNDO_KINDS: Final[UndoKinds] = {
    UNIT: UndoKind(undo_unit, outlives_reboot=True),
    SETTING: UndoKind(undo_setting),
    TEMPORARY_FILE: UndoKind(undo_temporary_file),
    SEGMENT_PAGES: UndoKind(undo_segment_pages),
}
