"""Groups of functions by name, over kernel versions and compilers; each cause says which of them
are its signature.
"""

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from necroscope.model.frame import frame_name
from necroscope.stacks.frames import frames_at
from necroscope.stacks.tree import Flags

UNNAMED: Final = "[unknown]"
# What compilers append to a function they split, cloned or moved: `.isra.0`, `.constprop.0.isra.0`,
# `.cold`, `.llvm.1234`.
_SUFFIX: Final = re.compile(r"\.(?:isra|constprop|part|cold|llvm|lto_priv|localalias)\b.*")


@dataclass(frozen=True, slots=True)
class Functions:
    """Functions whose whole name matches; kernel ones unless `is_user`."""

    regex: re.Pattern[str]
    is_user: bool = False

    def __or__(self, other: "Functions") -> "Functions":
        return Functions(re.compile(f"{self.regex.pattern}|{other.regex.pattern}"), self.is_user)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.regex.fullmatch(bare(name)) is not None


def functions(*names: str, is_user: bool = False) -> Functions:
    """A group: names separated by blanks, `*` stands for anything. `functions("mem_cgroup_iter
    css_next_descendant_*")`.
    """
    words = [word for text in names for word in text.split()]
    return Functions(
        re.compile("|".join(re.escape(word).replace(r"\*", ".*") for word in words)), is_user
    )


def bare(name: str) -> str:
    """A function's name without what the compiler appended."""
    return _SUFFIX.sub("", name) if "." in name else name


class FunctionNames:
    """Numbers for functions, so that a group is matched with each name once and not with each
    frame.
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[str, bool], int] = {}
        self._names: list[str] = []
        self._is_kernel: list[bool] = []
        self._members: dict[Functions, Flags] = {}

    def __len__(self) -> int:
        return len(self._names)

    def ids(self, names: Iterable[str], is_kernel: Iterable[bool]) -> NDArray[np.int64]:
        return np.array(
            [self._id(bare(name), kernel) for name, kernel in zip(names, is_kernel, strict=True)],
            dtype=np.int64,
        )

    def name(self, number: int) -> str:
        return self._names[number]

    def is_kernel(self) -> Flags:
        """For each number whether it is a function of the kernel."""
        return np.array(self._is_kernel, dtype=bool)

    def members(self, group: Functions) -> Flags:
        """For each number whether it is of the group."""
        known = self._members.get(group, _NOTHING)
        if len(known) < len(self._names):
            matches = group.regex.fullmatch
            new = zip(self._names[len(known) :], self._is_kernel[len(known) :], strict=True)
            flags = [
                is_kernel != group.is_user and matches(name) is not None for name, is_kernel in new
            ]
            known = self._members[group] = np.concatenate([known, np.array(flags, dtype=bool)])
        return known

    def _id(self, name: str, is_kernel: bool) -> int:
        number = self._ids.setdefault((name, is_kernel), len(self._names))
        if number == len(self._names):
            self._names.append(name)
            self._is_kernel.append(is_kernel)
        return number


def shared_names() -> FunctionNames:
    """One for all analyses of a thread: a process that judges a node for weeks sees the same
    functions again and again.
    """
    names: FunctionNames | None = getattr(_of_thread, "names", None)
    if names is None or len(names) > _MOST_NAMES:
        names = _of_thread.names = FunctionNames()
    return names


def frame_names(frames: pa.Table) -> list[str]:
    """How frames are called: by their function, else by module and offset."""
    return [
        frame_name(frame.function, frame.module or "", frame.offset) for frame in frames_at(frames)
    ]


_NOTHING: Final = np.zeros(0, dtype=bool)
_MOST_NAMES: Final = 20_000
_of_thread: Final = threading.local()
