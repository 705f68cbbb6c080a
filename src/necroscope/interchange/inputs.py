"""What an import is given: files of any kind, directories of rolling captures and support bundles,
each opened as far as its head.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from necroscope.errors import NecroscopeError, UsageError
from necroscope.interchange.capture import Capture
from necroscope.interchange.detect import FileKind, detect, is_perf_data
from necroscope.interchange.perf_data.reader import open_perf_data
from necroscope.interchange.rolling import RollingCapture, list_rolling, parse_name
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.interchange.unreadable import unreadable

if TYPE_CHECKING:
    from necroscope.interchange.support_bundle import SupportBundle


@dataclass(slots=True)
class Input:
    """One file. `folder` is the directory of rolling captures it came from; `capture` only for
    kinds that hold samples.

    `fault` says why it could not be opened, which only a file of a directory survives. `host` and
    the `directories` of cgroups are what a support bundle says.
    """

    path: Path
    kind: FileKind | None
    name: RollingCapture
    size_bytes: int
    written_ns: int
    folder: Path | None = None
    capture: Capture | None = None
    fault: str | None = None
    notes: list[str] = field(default_factory=list)
    host: str | None = None
    shown: str = ""
    directories: list[bytes] = field(default_factory=list)


def list_inputs(
    paths: Iterable[Path], search: SymbolSearch, utc_offset_s: int, scratch: Path
) -> list[Input]:
    """UsageError for a file that cannot be imported; one that a directory holds is kept with its
    fault. What is packed is unpacked into `scratch`.
    """
    found = [given for path in paths for given in _of_path(path, search, utc_offset_s, scratch)]
    if not found:
        raise UsageError(
            "there is nothing to import",
            "name files, directories of rolling captures, or support bundles",
        )
    return found


def _of_path(path: Path, search: SymbolSearch, utc_offset_s: int, scratch: Path) -> Iterator[Input]:
    bundle = None if is_perf_data(path) else _bundle(path, scratch)
    if bundle is not None:
        yield from _of_bundle(bundle, path, search)
        return
    # `perf record --threads` and `--dir` write a directory whose file is called `data`.
    if not path.is_dir() or (path / "data").is_file():
        file = path / "data" if path.is_dir() else path
        yield _open(file, parse_name(path, utc_offset_s), search)
        return
    is_named_here = search.kallsyms is None
    for rolling in list_rolling(path, utc_offset_s, prefers_text=is_named_here):
        try:
            given = _open(rolling.path, rolling, search)
        except NecroscopeError as error:
            given = Input(rolling.path, None, rolling, 0, 0, fault=error.facts)
        given.folder = path
        yield given


def _bundle(path: Path, scratch: Path) -> "SupportBundle | None":
    from necroscope.interchange.support_bundle import is_tar, open_bundle  # noqa: PLC0415 - not for perf.data

    return open_bundle(path, scratch) if path.is_dir() or is_tar(path) else None


def _of_bundle(bundle: "SupportBundle", path: Path, search: SymbolSearch) -> Iterator[Input]:
    """Notes of the bundle are reported with its first file."""
    opened = 0
    for inside, file in bundle.files.values():
        name = parse_name(Path(inside))
        try:
            given = _open(file, name, search)
            opened += 1
        except NecroscopeError as error:
            given = Input(file, None, name, 0, 0, fault=error.facts)
        given.folder, given.host, given.shown = path, bundle.host, f"{bundle.name}: {inside}"
        if given.kind is FileKind.PROC:
            given.directories, bundle.directories = bundle.directories, []
        given.notes += bundle.notes
        bundle.notes = []
        yield given
    if not opened:
        raise UsageError(
            f"{path} holds neither a kernel log nor copies of /proc nor sar's days",
            "import the files that matter one by one",
        )


def _open(path: Path, name: RollingCapture, search: SymbolSearch) -> Input:
    kind = detect(path)
    try:
        facts = path.stat()
    except OSError as error:
        raise unreadable(path, error) from None
    given = Input(path, kind, name, facts.st_size, facts.st_mtime_ns)
    if kind is FileKind.PERF_DATA:
        given.capture = open_perf_data(path, search)
    elif kind is FileKind.PERF_SCRIPT:
        from necroscope.interchange.perf_script import open_perf_script  # noqa: PLC0415 - its reader

        given.capture = open_perf_script(path)
    elif kind is FileKind.FOLDED:
        from necroscope.interchange.folded import open_folded  # noqa: PLC0415 - its reader

        given.capture = open_folded(path)
    return given
