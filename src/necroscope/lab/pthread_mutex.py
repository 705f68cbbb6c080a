"""A mutex of glibc, which Python's own locks are not: they wait for a semaphore or condition."""

import ctypes

_LIBC = ctypes.CDLL(None)
_MUTEX_BYTES = 64


class PthreadMutex:
    """Zeroed memory is an unlocked mutex; both calls leave Python's interpreter lock to others."""

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(_MUTEX_BYTES)

    def __enter__(self) -> None:
        _LIBC.pthread_mutex_lock(self._memory)

    def __exit__(self, *_: object) -> None:
        _LIBC.pthread_mutex_unlock(self._memory)
