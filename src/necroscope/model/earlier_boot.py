"""The boot before this one, as far as its recording shows how it ended."""

from typing import NamedTuple


class EarlierBoot(NamedTuple):
    """`is_cut`: its recorder did not end by itself, so it was killed, or the kernel ended first."""

    boot_id: str
    recorded_to_ns: int
    is_cut: bool
