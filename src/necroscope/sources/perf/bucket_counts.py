"""What was counted between two looks at a histogram that a BPF program fills."""


def rises(counts: bytes, counted: bytes) -> list[int]:
    """Without the zeros at the end. The counters only rise, so that their bytes can be subtracted
    as one number.
    """
    difference = (int.from_bytes(counts, "little") - int.from_bytes(counted, "little")).to_bytes(
        len(counts), "little"
    )
    used = (len(difference.rstrip(b"\0")) + 7) // 8
    return memoryview(difference).cast("Q")[:used].tolist()
