"""Every error a user can meet: facts, a way out, an exit code.

NecroscopeError
├── UsageError              the words of a command or a setting are off                     exit 2
├── PermissionMissing       the kernel said no; the hint names the capability or sysctl     exit 3
├── RecordingError          a directory is not a recording, or cannot be used as one        exit 4
│   └── RecordingBusy       another recorder holds it
├── SourceUnavailable       a kernel interface is absent or refused: becomes a gap          exit 5
├── CorruptData             bytes that fail their checksum: becomes a gap                   exit 6
├── ExperimentFailed        the recorder of a stakeout or of the lab does not record        exit 7
│   └── LabError            of lab/scenario.py: it cannot be provoked, or left something
└── TreatmentFailed         a treatment was not applied, or not taken back, as a whole      exit 8

The thrower states facts; only `cli/main.py` prints them. A SourceUnavailable or CorruptData never
ends a recording.
"""


class NecroscopeError(Exception):
    """Facts about what went wrong, and the way out."""

    exit_code = 1

    def __init__(self, facts: str, hint: str = "") -> None:
        super().__init__(facts)
        self.facts = facts
        self.hint = hint


class UsageError(NecroscopeError):
    exit_code = 2


class PermissionMissing(NecroscopeError):  # noqa: N818 - the name says the fact
    exit_code = 3


class RecordingError(NecroscopeError):
    exit_code = 4


class RecordingBusy(RecordingError):  # noqa: N818 - the name says the fact
    pass


class SourceUnavailable(NecroscopeError):  # noqa: N818 - the name says the fact
    exit_code = 5


class CorruptData(NecroscopeError):  # noqa: N818 - the name says the fact
    exit_code = 6


class ExperimentFailed(NecroscopeError):  # noqa: N818 - the name says the fact
    # Exit code 1 is a stakeout's catch.
    exit_code = 7


class TreatmentFailed(NecroscopeError):  # noqa: N818 - the name says the fact
    exit_code = 8
