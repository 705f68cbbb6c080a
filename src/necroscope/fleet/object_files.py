"""A lake's files in an object store, through pyarrow.fs, with time limits: a store that hangs must
become a 503.
"""

import contextlib
import os
from datetime import timedelta
from typing import Final
from urllib.parse import SplitResult, parse_qsl

from pyarrow import fs

from necroscope.errors import UsageError

SCHEMES: Final = frozenset({"s3", "gs"})
_OPTIONS: Final = frozenset({"region", "scheme", "endpoint_override"})
_CONNECT_TIMEOUT_S: Final = 5
_REQUEST_TIMEOUT_S: Final = 20
_ATTEMPTS: Final = 3


def open_store(url: SplitResult) -> "ObjectFiles":
    """`s3://bucket/prefix?region=R` or `gs://bucket/prefix`; `endpoint_override` and `scheme` lead
    to a store of one's own.
    """
    options = dict(parse_qsl(url.query))
    if options.keys() - _OPTIONS:
        raise UsageError(
            f"an object store has no option {sorted(options.keys() - _OPTIONS)[0]!r}",
            f"options are: {', '.join(sorted(_OPTIONS))}; credentials come from the environment",
        )
    store = _s3(url.netloc, options) if url.scheme == "s3" else _gcs(options)
    return ObjectFiles(store, f"{url.netloc}{url.path}")


def _s3(bucket: str, options: dict[str, str]) -> fs.FileSystem:
    if "region" not in options and "endpoint_override" not in options:
        known = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        options = {**options, "region": known or fs.resolve_s3_region(bucket)}
    return fs.S3FileSystem(
        **options,
        connect_timeout=_CONNECT_TIMEOUT_S,
        request_timeout=_REQUEST_TIMEOUT_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )


def _gcs(options: dict[str, str]) -> fs.FileSystem:
    known = {name: value for name, value in options.items() if name != "region"}
    # Emulators of it know no credentials.
    return fs.GcsFileSystem(
        **known,
        anonymous="endpoint_override" in known,
        retry_time_limit=timedelta(seconds=_REQUEST_TIMEOUT_S),
    )


class ObjectFiles:
    """Objects under `base`, which is bucket/prefix. A PUT that was answered is durable; a cut one
    leaves no object.
    """

    def __init__(self, filesystem: fs.FileSystem, base: str) -> None:
        self.filesystem = filesystem
        self._base = base.strip("/")

    def place(self, path: str) -> str:
        return f"{self._base}/{path}"

    def put(self, path: str, data: bytes) -> None:
        with self.filesystem.open_output_stream(self.place(path)) as stream:
            stream.write(data)

    def read(self, path: str) -> bytes:
        with self.filesystem.open_input_stream(self.place(path)) as stream:
            content: bytes = stream.read()
        return content

    def _list(self, prefix: str, kind: fs.FileType, *, recursive: bool) -> list[str]:
        selector = fs.FileSelector(
            self.place(prefix).rstrip("/"), recursive=recursive, allow_not_found=True
        )
        return sorted(
            info.path for info in self.filesystem.get_file_info(selector) if info.type == kind
        )

    def paths(self, prefix: str) -> list[str]:
        return [
            path.removeprefix(f"{self._base}/")
            for path in self._list(prefix, fs.FileType.File, recursive=True)
        ]

    def directories(self, prefix: str) -> list[str]:
        return [
            path.rpartition("/")[2]
            for path in self._list(prefix, fs.FileType.Directory, recursive=False)
        ]

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(self.place(path))

    def space_bytes(self) -> tuple[int, int] | None:
        return None

    def remove_leftovers(self) -> None:
        """The store's own lifecycle rule for unfinished uploads does it."""
