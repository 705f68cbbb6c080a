"""Which modules the kernel has: /proc/modules (kernel/module), because no record of perf tells of
one that comes or goes.
"""

from pathlib import Path


class LoadedModules:
    """Asked now and then whether they are still the same."""

    def __init__(self, proc: Path) -> None:
        self._file = proc / "modules"
        self._known = self._read()

    def have_changed(self) -> bool:
        """Since the last call."""
        before, self._known = self._known, self._read()
        return self._known != before

    def _read(self) -> frozenset[tuple[bytes, bytes]]:
        """Name and address: one that was loaded again may lie elsewhere. The count of users between
        them changes all the time.
        """
        try:
            data = self._file.read_bytes()
        except OSError:  # a kernel without modules
            return frozenset()
        lines = (line.split() for line in data.splitlines())
        return frozenset((fields[0], fields[5]) for fields in lines if len(fields) > 5)
