"""Frames of addresses: functions of the kernel, of the files that were mapped, and of code that was made at run time."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from necroscope.interchange.perf_data.kernel_names import KernelNames
from necroscope.interchange.perf_data.symbol_files import SymbolFiles
from necroscope.model.frame import UNKNOWN_USER, Frame
from necroscope.model.names import clean

_MODULE_LIMIT: Final = 300


class Module(NamedTuple):
    """`pid` only for code that has no file: then offsets are addresses. With neither it stands for what is not mapped."""

    path: str
    build_id: str | None
    pid: int


class Question(NamedTuple):
    """Addresses in the kernel, and offsets in modules. `mappings` are the kernel's own, `programs` KSYMBOL records."""

    kernel: list[int]
    user: list[tuple[Module, list[int]]]
    mappings: list[bytes]
    programs: list[bytes]


class FrameNames:
    def __init__(self, kernel: KernelNames, files: SymbolFiles) -> None:
        self._kernel = kernel
        self._files = files

    @property
    def why_kernel_unnamed(self) -> str:
        return self._kernel.why_unnamed

    def load_kernel(self, mappings: list[bytes]) -> None:
        """Before anybody asks: the kernel takes its time to write kallsyms."""
        self._kernel.load(mappings)

    def frames(self, question: Question) -> list[Frame]:
        """Of the kernel's addresses, then of each module's offsets."""
        found = self._kernel_frames(question) if question.kernel else []
        for module, offsets in question.user:
            found += self._jit_frames(module, offsets) if module.pid >= 0 else self._file_frames(module, offsets)
        return found

    def _kernel_frames(self, question: Question) -> list[Frame]:
        symbols = self._kernel.lookup(question.kernel, question.mappings, question.programs)
        return [
            Frame(symbol[0], symbol[1], "kernel", None, None)
            if symbol
            else Frame(None, "[kernel]", "kernel", address - (1 << 64) if address >> 63 else address, None)
            for address, symbol in zip(question.kernel, symbols, strict=True)
        ]

    def _jit_frames(self, module: Module, addresses: Sequence[int]) -> list[Frame]:
        names = self._files.jit_functions(module.pid, addresses)
        return [Frame(name, "[jit]", "jit", None, None) if name else UNKNOWN_USER for name in names]

    def _file_frames(self, module: Module, offsets: Sequence[int]) -> list[Frame]:
        if not module.path:
            return [UNKNOWN_USER] * len(offsets)
        names = self._files.functions(module.path, module.build_id, offsets)
        label = clean(module.path.encode("utf-8", "surrogateescape"), _MODULE_LIMIT)
        named = {name: Frame(name, label, "user", None, module.build_id) for name in set(names) if name}
        return [
            named[name] if name else Frame(None, label, "user", offset, module.build_id)
            for name, offset in zip(names, offsets, strict=True)
        ]
