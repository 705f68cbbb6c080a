"""Programs of `nobody` beside a recorder in a process of its own. docs/security.md says which test
holds which row of the threat model.
"""

from tests.integration.conftest import busy, record, silent_log

__all__ = ["busy", "record", "silent_log"]
