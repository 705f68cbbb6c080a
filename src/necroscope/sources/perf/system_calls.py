"""What a task that sleeps interruptibly in a system call sleeps for, by the call's number: for
another task, or for nothing in particular, as a server that waits for a request.

Numbers are those of asm/unistd.h. Calls on files sleep so only where a server has to answer (FUSE)
or another has to open the other end of a FIFO; connect(2) where the other side has to accept.
read(2), poll(2), accept(2) and the like are how programs idle, and are left out.
"""

from typing import Final

# As `wait_programs` compares them; all but the last are kinds of waits (`wait_layout`) as well.
ORDINARY, ANSWER, FUTEX, FILE_LOCK, WRITE, FCNTL = 0, 1, 2, 4, 5, 6
CALLS: Final = 512
# semop semtimedop, whose first argument is the set of semaphores; nanosleep clock_nanosleep; what
# reads the descriptor that is its first argument (read readv recvfrom recvmsg recvmmsg); what waits
# for any of several (poll select pselect6 ppoll epoll_wait epoll_pwait epoll_pwait2).
SEMAPHORES: Final = {"x86_64": (65, 220), "aarch64": (193, 192)}
NAPS: Final = {"x86_64": (35, 230), "aarch64": (101, 115)}
READS: Final = {"x86_64": (0, 19, 45, 47, 299), "aarch64": (63, 65, 207, 212, 243)}
POLLS: Final = {"x86_64": (7, 23, 270, 271, 232, 281, 441), "aarch64": (72, 73, 22, 441)}
EPOLLS: Final = {"x86_64": (232, 281, 441), "aarch64": (22, 441)}
WRITES: Final = {"x86_64": (1, 20, 44, 46, 307, 40), "aarch64": (64, 66, 206, 211, 269, 71)}
_X86_64: Final = {
    # write writev sendto sendmsg sendmmsg msgsnd mq_timedsend
    WRITE: (1, 20, 44, 46, 307, 69, 242),
    FUTEX: (202,),
    FILE_LOCK: (73,),
    FCNTL: (72,),
    ANSWER: (
        *(2, 3, 4, 5, 6, 17, 18, 21),  # open close stat fstat lstat pread64 pwrite64 access
        *(42, 59),  # connect execve
        *(74, 75, 76, 77, 78, 80),  # fsync fdatasync truncate ftruncate getdents chdir
        *range(82, 95),  # rename mkdir rmdir creat link ... chmod chown
        *(137, 138, 162, 165, 166),  # statfs fstatfs sync mount umount2
        *range(188, 200),  # extended attributes
        *(217, *range(257, 270)),  # getdents64; openat ... faccessat
        *(277, 306, 316, 322, 332, 437, 439),  # sync_file_range syncfs renameat2 execveat statx ...
    ),
}
_AARCH64: Final = {
    WRITE: (64, 66, 206, 211, 269, 189, 182),
    FUTEX: (98,),
    FILE_LOCK: (32,),
    FCNTL: (25,),
    ANSWER: (
        *range(5, 17),  # extended attributes
        *range(33, 41),  # mknodat ... mount
        *(43, 44, 45, 46, 48, 49, 53, 54, 56, 57),  # statfs ... openat close
        *(61, 67, 68, 78, 79, 80, 81, 82, 83, 84),  # getdents64 ... sync_file_range
        *(203, 221, 267, 276, 281, 291, 437, 439),  # connect execve syncfs ...
    ),
}


def sleeps_by_call(machine: str) -> bytes | None:
    """One byte per number; None for a machine whose numbers are not known here."""
    table = {"x86_64": _X86_64, "aarch64": _AARCH64}.get(machine)
    if table is None:
        return None
    sleeps = bytearray(CALLS)
    for kind, numbers in table.items():
        for number in numbers:
            sleeps[number] = kind
    return bytes(sleeps)
