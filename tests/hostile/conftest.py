"""Programs of `nobody` beside a recorder in a process of its own."""

from tests.integration.conftest import record

__all__ = ["record"]
