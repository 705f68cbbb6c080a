"""A lake: what the nodes pushed, as files that any Parquet reader opens, on a directory or an
object store.

    inbox/<time_ns>-<collector>.batches        acknowledged, not yet in the tables
    compacting/<collector>                     which of them it is about to take
    tables/<table>/date=YYYY-MM-DD/cluster=C/<time_ns>-<writer>-<rows>.parquet
    bundles/cluster=C/date=YYYY-MM-DD/NODE--ID.bundle
    swept/VERSION/*.json                       evidence that this version has judged
    refused/...                                acknowledged once, unreadable now: kept for people

Files are written once, whole, and never changed. A row may be in several files; `ask` reads it
once.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa

from necroscope.errors import UsageError
from necroscope.fleet.lake_files import DirectoryFiles, Files, LakeError, NotInLake
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.object_files import SCHEMES, open_store
from necroscope.model.units import NS_PER_S

if TYPE_CHECKING:
    import pyarrow.dataset as ds

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")
_WAY_OUT: Final = (
    "look at the lake's space, rights and network; nothing was acknowledged that is not stored"
)


class Lake:
    """All verbs raise LakeError where the directory or the store refuses."""

    def __init__(self, files: Files, url: str) -> None:
        self._files = files
        self.url = url

    @classmethod
    def open(cls, url: str) -> "Lake":
        """A path, `file://`, `s3://bucket/prefix` or `gs://bucket/prefix`, with options as
        `object_files.open_store` has them.
        """
        parts = urlsplit(url)
        if parts.scheme in {"", "file"}:
            return cls(DirectoryFiles(Path(parts.path if parts.scheme else url)), url)
        if parts.scheme not in SCHEMES or not parts.netloc:
            raise UsageError(
                f"{url!r} is not a lake", "a directory, s3://bucket/prefix or gs://bucket/prefix"
            )
        try:
            return cls(open_store(parts), url)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise LakeError(
                f"cannot open {url}: {error}", "look at its credentials and its region"
            ) from None

    def put(self, path: str, data: bytes) -> None:
        """Durable when it returns; readers see the whole file or none."""
        self._ask(self._files.put, _check_path(path), data)

    def read(self, path: str) -> bytes:
        return self._ask(self._files.read, _check_path(path))

    def delete(self, path: str) -> None:
        """A file that is gone already is not an error: another collector was faster."""
        self._ask(self._files.delete, _check_path(path))

    def space_bytes(self) -> tuple[int, int] | None:
        """Free, and in all; None where the store has no end."""
        return self._ask(self._files.space_bytes)

    def remove_leftovers(self) -> None:
        """Of puts whose process was killed."""
        self._ask(self._files.remove_leftovers)

    def days(self, table: str) -> list[date]:
        """The days (UTC) of which a table has rows."""
        names = self._ask(self._files.directories, f"tables/{table}")
        return [
            date.fromisoformat(name.removeprefix("date="))
            for name in names
            if name.startswith("date=")
        ]

    def table_files(
        self,
        table: str,
        from_ns: int | None = None,
        to_ns: int | None = None,
        clusters: Iterable[str] | None = None,
    ) -> list[str]:
        """Files that can hold rows with a time in [from_ns, to_ns) of these clusters; None: of
        all.
        """
        if from_ns is None and to_ns is None:
            paths = self.list(f"tables/{table}")
        else:
            first = day_of(from_ns) if from_ns is not None else date.min
            last = day_of(to_ns - 1) if to_ns is not None else date.max
            days = [day for day in self.days(table) if first <= day <= last]
            paths = [path for day in days for path in self.list(f"tables/{table}/date={day}")]
        wanted = None if clusters is None else {f"cluster={name}" for name in clusters}
        return [
            path
            for path in paths
            if path.endswith(".parquet")
            and (wanted is None or PurePosixPath(path).parts[3] in wanted)
        ]

    def dataset(
        self,
        table: str,
        from_ns: int | None = None,
        to_ns: int | None = None,
        clusters: Iterable[str] | None = None,
    ) -> "ds.Dataset":
        """Of the days and clusters that can hold it; rows are not filtered further, and may be
        there twice.
        """
        if table not in LAKE_TABLES:
            raise UsageError(
                f"a lake has no table {table!r}", f"tables are: {', '.join(LAKE_TABLES)}"
            )
        return self.dataset_of(table, self.table_files(table, from_ns, to_ns, clusters))

    def local_place(self, path: str) -> str | None:
        """Of a file, if the lake is a directory of this machine."""
        files = self._files
        return files.place(path) if isinstance(files, DirectoryFiles) else None

    def dataset_of(self, table: str, paths: Iterable[str]) -> "ds.Dataset":
        """Of these files. Columns that an older collector did not write are null."""
        import pyarrow.dataset as ds  # noqa: PLC0415 - as slow to load as a small answer

        form = ds.ParquetFileFormat()
        files = self._files
        fragments = [form.make_fragment(files.place(path), files.filesystem) for path in paths]
        return ds.FileSystemDataset(fragments, LAKE_TABLES[table], form, files.filesystem)

    def _ask(
        self,
        verb: Callable[Parameters, Answer],
        *arguments: Parameters.args,
        **options: Parameters.kwargs,
    ) -> Answer:
        try:
            return verb(*arguments, **options)
        except FileNotFoundError as error:
            raise NotInLake(
                f"{arguments[0] if arguments else error} is not in the lake {self.url}",
                "it was merged or removed",
            ) from None
        except (OSError, pa.ArrowException) as error:
            reason = (
                error.strerror
                if isinstance(error, OSError) and error.strerror
                else str(error)[:300]
            )
            raise LakeError(f"the lake {self.url} refuses: {reason}", _WAY_OUT) from None

    # The last method: behind it `list` is no longer the type.
    def list(self, prefix: str) -> list[str]:
        """Paths of all files under a directory of the lake, sorted."""
        return self._ask(self._files.paths, _check_path(prefix))


def day_of(time_ns: int) -> date:
    return datetime.fromtimestamp(time_ns // NS_PER_S, UTC).date()


def _check_path(path: str) -> str:
    """Never outside the lake, whatever a name in it is."""
    parts = path.split("/")
    if not path or any(part in {"", ".", ".."} for part in parts) or "\\" in path or "\0" in path:
        raise UsageError(
            f"{path!r} is not a path in a lake", "relative, with '/', without '.' and '..'"
        )
    return path
