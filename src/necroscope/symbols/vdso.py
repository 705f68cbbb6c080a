"""The kernel's vdso, an ELF image the kernel maps into every process; ours is the same as
everybody's (64 bit).
"""

from typing import Final

from necroscope.symbols.elf import Elf
from necroscope.symbols.function_index import FunctionIndex, index_dynsym, index_symtab
from necroscope.symbols.image import BytesImage, ImageError
from necroscope.symbols.process_maps import parse

PATH: Final = "[vdso]"
_SIZE_LIMIT_BYTES: Final = 1 << 20


class Vdso:
    """Its symbols; offsets are counted from the start of the mapping. `elf` is None where there is
    none that can be read.
    """

    def __init__(self, content: bytes) -> None:
        self.image = BytesImage(content)
        self.elf: Elf | None = None
        self.tables: list[FunctionIndex] = []
        try:
            self.elf = Elf(self.image)
            table = index_symtab(self.elf, self.image) or index_dynsym(self.elf, self.image)
        except ImageError:
            return
        self.tables = [table] if table is not None else []


def load() -> Vdso:
    """Empty where there is no vdso (booted with vdso=0)."""
    try:
        with (
            open("/proc/self/maps", "rb") as maps,
            open("/proc/self/mem", "rb", buffering=0) as memory,
        ):
            mapping = next(
                (mapping for mapping in parse(maps.read()) if mapping.path == PATH), None
            )
            if mapping is None or mapping.end - mapping.start > _SIZE_LIMIT_BYTES:
                return Vdso(b"")
            memory.seek(mapping.start)
            return Vdso(memory.read(mapping.end - mapping.start))
    except OSError:
        return Vdso(b"")
