"""The kernel's vdso, an ELF image the kernel maps into every process; ours is the same as everybody's (64 bit)."""

from typing import Final

from necroscope.symbols.demangle import demangle
from necroscope.symbols.elf import Elf
from necroscope.symbols.function_index import FunctionIndex, index_dynsym, index_symtab
from necroscope.symbols.image import BytesImage, ImageError
from necroscope.symbols.process_maps import parse

PATH: Final = "[vdso]"
_SIZE_LIMIT_BYTES: Final = 1 << 20


class Vdso:
    """Functions by offset from the start of the mapping."""

    def __init__(self, content: bytes) -> None:
        self._image = BytesImage(content)
        self._elf: Elf | None = None
        self._functions: FunctionIndex | None = None
        try:
            self._elf = Elf(self._image)
            self._functions = index_symtab(self._elf, self._image) or index_dynsym(self._elf, self._image)
        except ImageError:
            pass

    def lookup(self, offsets: list[int]) -> list[str | None]:
        if self._elf is None or self._functions is None:
            return [None] * len(offsets)
        return [self._function(address) for address in self._elf.segments.addresses_of(offsets)]

    def _function(self, address: int) -> str | None:
        assert self._functions is not None
        ((_, name),) = self._functions.functions(address, address + 1, self._image)
        return None if name is None else demangle(name)


def load() -> Vdso:
    """Empty where there is no vdso (booted with vdso=0)."""
    try:
        with open("/proc/self/maps", "rb") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
            mapping = next((mapping for mapping in parse(maps.read()) if mapping.path == PATH), None)
            if mapping is None or mapping.end - mapping.start > _SIZE_LIMIT_BYTES:
                return Vdso(b"")
            memory.seek(mapping.start)
            return Vdso(memory.read(mapping.end - mapping.start))
    except OSError:
        return Vdso(b"")
