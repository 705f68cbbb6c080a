"""The native library next to `profile`: loaded once, and refused with a way out where it is missing
or of another version.
"""

import platform
from collections.abc import Mapping, Sequence
from ctypes import CDLL
from functools import cache
from pathlib import Path
from typing import Any, Final

from necroscope.errors import SourceUnavailable

ABI: Final = 6
LIBRARY: Final = Path(__file__).parent / "profile" / "libprofile.so"
_HINT: Final = (
    "install the wheel of this machine's architecture (pip install --force-reinstall necroscope), "
    "or in a source tree run scripts/setup, which compiles it with gcc"
)


@cache
def _open(path: Path) -> CDLL:
    if not path.exists():
        raise SourceUnavailable(
            f"the native library {path.name} is not there: this package was built without it", _HINT
        )
    architecture = _architecture(path)
    if architecture not in (None, platform.machine()):
        # The loader passes over such a file, and says that there is none.
        facts = (
            f"the native library {path.name} is for {architecture}, and this machine is"
            f" {platform.machine()}"
        )
        raise SourceUnavailable(facts, _HINT)
    try:
        library = CDLL(str(path))
        abi = int(library.profile_abi())
    except OSError as error:
        facts = (
            f"the native library {path.name} cannot be loaded on this {platform.machine()} machine:"
            f" {error}"
        )
        raise SourceUnavailable(facts, _HINT) from None
    except AttributeError:
        raise SourceUnavailable(
            f"{path.name} is not necroscope's library: it has no profile_abi", _HINT
        ) from None
    if abi != ABI:
        raise SourceUnavailable(
            f"{path.name} is of interface version {abi}, and this package needs {ABI}", _HINT
        )
    return library


def load(signatures: Mapping[str, tuple[Any, Sequence[Any]]], path: Path = LIBRARY) -> CDLL:
    """The library, with these functions' results and arguments; SourceUnavailable says why there is
    none.
    """
    library = _open(path)
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name, None)
        if function is None:
            raise SourceUnavailable(
                f"{path.name} is not necroscope's library: it has no {name}", _HINT
            )
        function.restype, function.argtypes = result, arguments
    return library


def _architecture(path: Path) -> str | None:
    """By e_machine of its ELF header (include/uapi/linux/elf-em.h); None if it is not an ELF
    file.
    """
    with path.open("rb") as file:
        header = file.read(20)
    is_elf = len(header) == 20 and header.startswith(b"\x7fELF")
    return (
        {62: "x86_64", 183: "aarch64"}.get(
            int.from_bytes(header[18:20], "little"), "another architecture"
        )
        if is_elf
        else None
    )
