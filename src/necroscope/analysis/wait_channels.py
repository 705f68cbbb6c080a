"""What a task slept for, by the kernel's functions it slept in: a lock of the kernel, a device,
dirty pages, a lock of its own program.

A stack that the kernel walks for others leaves out its scheduler (`__sched`, kernel/stacktrace.c)
and the slow paths of all locks: it begins with who asked for the lock. So that it was a lock,
and of which kind, is known from how the sleeper was woken, which is how the lock was given back.
Which lock it is, is known from who asks for it: these functions take that one and no other. Where
no name is known, the function that asked is the name.
"""

from dataclasses import dataclass
from typing import Final

from necroscope.analysis.functions import Functions, functions

# Callers of a lock that are looked at, and functions of the one that gives it back.
_NEAR: Final = 3
_NEAR_RELEASE: Final = 4
# Of a lock on a file and of pipes more: they are woken through a queue.
_NEAR_QUEUED: Final = 8
FUTEX, LOCK, WRITEBACK, DEVICE, ORDINARY_SLEEP, OTHER = (
    *("futex", "lock", "writeback", "device"),
    *("ordinary", "other"),
)
FILE_LOCK, UNREAD, STOPPED, CHILD, ANSWER = "file_lock", "unread", "stopped", "child", "answer"
UNANSWERED, UNSERVED = "unanswered", "unserved"
SEMAPHORE, ASLEEP = "semaphore", "asleep"
MEMORY_LIMIT = "memory_limit"
CHILD_TO_END: Final = "a child process"
# kernel/locking/: mutexes, semaphores and rt_mutexes; rwsems; per-CPU rwsems.
_MUTEX: Final = functions(
    "__mutex_lock* mutex_lock* ww_mutex_lock* __ww_mutex_lock* __down_common* __down down"
    " down_killable __rt_mutex_lock* rt_mutex_lock* rt_mutex_slowlock* schedule_preempt_disabled"
)
_RWSEM: Final = functions(
    "rwsem_down_* down_read* down_write* __down_read* __down_write* mmap_read_lock*"
    " mmap_write_lock*"
)
_PER_CPU_RWSEM: Final = functions("percpu_rwsem_wait* percpu_down_* __percpu_down_*")
PRIMITIVES: Final = _MUTEX | _RWSEM | _PER_CPU_RWSEM
MMAP_LOCK: Final = "mmap_lock"
# System calls that have it while they work on the mappings of their own process.
MMAP_SECTIONS: Final = functions(
    "do_madvise do_mprotect_pkey __vm_munmap vm_munmap vm_mmap_pgoff __do_sys_brk __x64_sys_brk"
    " __x64_sys_mremap __x64_sys_munmap __arm64_sys_brk __arm64_sys_mremap __arm64_sys_munmap"
    " dup_mm* do_mlock* __mm_populate do_mincore"
)
# kernel/futex/: who sleeps there, and how a lock of user space is given back.
_FUTEX_SLEEPS: Final = functions("futex_* __futex_* do_futex")
_FUTEX_RELEASES: Final = functions("futex_wake* do_futex futex_unlock_pi wake_futex_pi")
# ipc/sem.c
_SETS: Final = functions("__do_semtimedop do_semtimedop ksys_semtimedop __x64_sys_sem* semctl_*")
# fs/locks.c; fs/pipe.c, net/core/sock.c, net/unix/af_unix.c, net/core/stream.c.
_FILE_LOCKS: Final = functions("locks_* __locks_* flock_* fcntl_setlk* posix_lock* do_lock_file_*")
_WRITES: Final = functions(
    "pipe_write anon_pipe_write fifo_pipe_write wait_for_space splice_to_pipe sock_wait_for_wmem"
    " sock_alloc_send_pskb sk_stream_wait_memory unix_wait_for_peer unix_stream_sendmsg"
    " unix_dgram_sendmsg tcp_sendmsg_locked tcp_sendmsg n_tty_write do_msgsnd do_mq_timedsend"
)
# Where a task enters a system call (x86, arm64), and what a signal goes through: it ends a sleep
# without an answer.
_CALLS: Final = functions(
    "do_syscall_64 entry_SYSCALL_64* __x64_sys_* __arm64_sys_* el0_svc* invoke_syscall"
)
_SIGNALS: Final = functions(
    "complete_signal signal_wake_up_state __send_signal_locked send_signal_locked ptrace_*"
)
# How each is given back.
_RELEASES: Final = (
    (functions("__mutex_unlock_slowpath mutex_unlock* __up up rt_mutex_* __rt_mutex_*"), _MUTEX),
    (functions("percpu_up_* __percpu_up_* percpu_rwsem_wake_function"), _PER_CPU_RWSEM),
    (functions("rwsem_wake rwsem_mark_wake up_read up_write downgrade_write"), _RWSEM),
)
# Who comes to wait for a rwsem lets those in front of it go on, and did not have it itself.
_PASSED_ON: Final = ((functions("rwsem_down_*"), _RWSEM),)


@dataclass(frozen=True, slots=True)
class _Lock:
    name: str
    primitive: Functions
    callers: Functions
    is_global: bool = False


_LOCKS: Final = (
    _Lock(
        "rtnl_mutex",
        _MUTEX,
        functions(
            "rtnl_* rtnetlink_* linkwatch_* dev_ioctl devinet_ioctl register_netdev*"
            " netdev_run_todo unregister_netdev* default_device_exit* cleanup_net addrconf_*"
            " inet6_rtm_* inet_rtm_* setup_net ip_mc_* bond_* tun_chr_* __tun_* veth_* br_*"
        ),
        is_global=True,
    ),
    _Lock(
        "cgroup_mutex",
        _MUTEX,
        functions(
            "cgroup_kn_lock_live cgroup_lock* cgroup_mkdir cgroup_rmdir cgroup_*_write"
            " cgroup_attach_* proc_cgroup_show proc_cgroupstats_show css_killed_work_fn"
            " css_release_work_fn cgroup_rm_* cgroup_destroy_* cgroup_sk_alloc cgroup_do_get_tree"
            " cgroup_path_ns cgroupstats_build cgroup_get_from_* __cgroup_procs_write cpuset_*"
        ),
        is_global=True,
    ),
    _Lock(
        "cgroup_threadgroup_rwsem",
        _PER_CPU_RWSEM,
        functions(
            "cgroup_threadgroup_* cgroup_can_fork cgroup_css_set_fork copy_process exit_signals"
            " begin_new_exec cgroup_attach_lock cgroup_procs_write_start cgroup_update_dfl_csses"
            " de_thread cgroup_attach_* __cgroup_procs_write"
        ),
        is_global=True,
    ),
    _Lock(
        "s_writers of a frozen file system",
        _PER_CPU_RWSEM,
        functions(
            "mnt_want_write* sb_start_* __sb_start_write file_start_write vfs_* ext4_* xfs_*"
            " btrfs_* do_sys_openat2 path_openat filename_create do_unlinkat ovl_* kiocb_*"
        ),
    ),
    _Lock(
        MMAP_LOCK,
        _RWSEM,
        functions(
            "do_user_addr_fault lock_mm_and_find_vma exc_page_fault do_page_fault __vm_munmap"
            " vm_mmap_pgoff do_mprotect_pkey do_madvise __do_sys_brk __x64_sys_brk exit_mm"
            " __x64_sys_mprotect exit_mmap dup_mm* __access_remote_vm access_remote_vm"
            " get_cmdline m_start proc_pid_cmdline_read environ_read khugepaged* task_numa_work"
            " vm_munmap __x64_sys_munmap __x64_sys_mremap do_mincore do_mlock get_user_pages*"
            " __gup_longterm_locked madvise_lock lock_mm_and_find_vma do_mmap* lock_vma_under_rcu"
        ),
    ),
    _Lock(
        "i_rwsem",
        _RWSEM,
        functions(
            "ext4_* xfs_* btrfs_* f2fs_* iterate_dir path_openat open_last_lookups lookup_slow"
            " walk_component filename_create do_unlinkat do_rmdir lock_rename* do_renameat2 vfs_*"
            " generic_file_write_iter chown_common chmod_common do_truncate notify_change"
            " start_dirop start_creating* simple_start_creating shmem_* inode_lock* lookup_one*"
            " ovl_* fuse_* nfs_* lock_two_nondirectories start_removing* __start_dirop"
        ),
    ),
)
_WRITEBACK: Final = functions(
    "balance_dirty_pages* wb_wait_for_completion folio_wait_writeback* wait_on_page_writeback"
    " sync_inodes_sb __writeback_inodes_sb_nr wait_sb_inodes __filemap_fdatawait_range"
    " writeback_single_inode"
)
_DEVICE: Final = functions(
    "folio_wait_bit_common* wait_on_page_bit* __wait_on_buffer bit_wait_io out_of_line_wait_on_bit*"
    " submit_bio_wait blk_mq_get_tag rq_qos_wait wbt_wait blkdev_issue_* blk_execute_rq"
    " jbd2_* wait_transaction_locked add_transaction_credits start_this_handle do_get_write_access"
    " xlog_* xfs_buf_* __blkdev_* iomap_dio_* __iomap_dio_rw request_wait_answer"
    " fuse_simple_request __fuse_simple_request nfs_* rpc_* __rpc_* swap_read* swapin_*"
    " read_swap_cache* __lock_page* folio_lock* __folio_lock* io_schedule_timeout blk_*"
)
_ORDINARY_SLEEPS: Final = functions(
    "msleep* schedule_timeout_uninterruptible usleep_range* do_coredump coredump_wait"
)
# kernel/rcu/: until every core has passed a quiet moment. Behind each other's question tasks stand
# at a mutex, but who has it waits for the cores as well.
_GRACE_PERIODS: Final = functions(
    "synchronize_rcu* synchronize_srcu* __synchronize_srcu rcu_barrier* __wait_rcu_gp wait_rcu_gp"
    " exp_funnel_lock synchronize_net"
)
# kernel/signal.c, kernel/cgroup/freezer.c, kernel/freezer.c: how it stands still, in words.
_STOPS: Final = (
    (functions("do_signal_stop"), "stopped by a signal"),
    (functions("ptrace_stop ptrace_notify"), "stopped by its tracer"),
    (functions("do_freezer_trap cgroup_enter_frozen __refrigerator"), "in a frozen cgroup"),
)
# mm/memcontrol.c, mm/memcontrol-v1.c: made to sleep by the limit of the task's own memory cgroup.
# Who ends it made room, and is not who kept the task waiting.
_LIMITS: Final = (
    (
        functions("mem_cgroup_oom_synchronize"),
        MEMORY_LIMIT,
        "for room in its memory cgroup, whose OOM killer is switched off",
    ),
    (
        functions("mem_cgroup_handle_over_high __mem_cgroup_handle_over_high"),
        MEMORY_LIMIT,
        "because its memory cgroup is over memory.high",
    ),
)
# Sleeps that another process has to end, by what it has to do.
_ANSWERS: Final = (
    (
        functions("wait_for_vfork_done kernel_clone __do_sys_vfork"),
        CHILD,
        "for its child (vfork) to start a program or to end",
    ),
    (
        functions("unix_*connect"),
        ANSWER,
        "for a server to accept its connection",
    ),
    (
        functions("inet_wait_for_connect inet_stream_connect __inet_stream_connect"),
        ORDINARY_SLEEP,
        "for a server, maybe of another machine, to accept its connection",
    ),
    (
        functions("wait_for_partner fifo_open"),
        ORDINARY_SLEEP,
        "for the other end of a FIFO to be opened",
    ),
    (functions("handle_userfault"), OTHER, "in a page fault that userfaultfd(2) has to answer"),
)
# What another process of this machine may have to answer: who ends the sleep tells.
ANSWERED: Final = (ANSWER, CHILD, DEVICE, OTHER)


@dataclass(frozen=True, slots=True)
class WaitChannel:
    """`name` is the lock's, or the function that says most; `is_global`: many parts of the system
    take it.
    """

    kind: str
    name: str
    words: str
    is_global: bool = False

    @property
    def is_one_lock(self) -> bool:
        """All who wait for it wait for the same; else there is one in every object of a kind."""
        return self.kind == FUTEX or self.is_global or self.name == MMAP_LOCK


# By kind of wait: what it is called, in words, and the functions of who sleeps.
_OF_USERS: Final = {
    FUTEX: ("futex", "for a lock of its own program (futex)", _FUTEX_SLEEPS),
    FILE_LOCK: ("a lock on a file", "for a file lock", _FILE_LOCKS),
    SEMAPHORE: ("a semaphore", "for a shared semaphore", _FUTEX_SLEEPS | _SETS),
    UNREAD: ("a pipe or socket", "to write to a full pipe or socket", _WRITES),
}
# kernel/exit.c
_CHILD_WAITS: Final = functions("do_wait kernel_wait4 kernel_waitid")
# Of tasks that are part of a wait of others.
_OF_OTHERS: Final = {
    UNANSWERED: ("an answer", "to read from a pipe or socket"),
    UNSERVED: ("an answer", "for an answer over a socket"),
    ASLEEP: ("a timer", "until a timer ended"),
}


def is_release(kind: str, by_stack: tuple[str, ...]) -> bool:
    """Who woke the sleeper gave a lock back, or read: a signal, a tracer or an exit wakes as
    well.
    """
    if kind == UNREAD:
        return is_answer(by_stack)
    if kind == FILE_LOCK:
        return any(name in _FILE_LOCKS for name in by_stack[:_NEAR_QUEUED])
    groups = (
        [_FUTEX_RELEASES | _SETS]
        if kind in (FUTEX, SEMAPHORE)
        else [release for release, _ in _RELEASES]
    )
    return any(name in group for group in groups for name in by_stack[:_NEAR_RELEASE])


def is_answer(by_stack: tuple[str, ...]) -> bool:
    """A process ended the sleep in a system call of its own, and not by a signal."""
    is_called = any(name in _CALLS for name in by_stack)
    return is_called and not any(name in _SIGNALS for name in by_stack)


def is_kernel_lock(by_stack: tuple[str, ...]) -> bool:
    """Whether a sleeping lock of the kernel was given back."""
    return is_release("blocked", by_stack)


def channel_of(
    kind: str,
    stack: tuple[str, ...],
    by_stack: tuple[str, ...] = (),
    *,
    is_lock: bool = False,
) -> WaitChannel:
    """`by_stack` is that of who woke it; a sleep that goes on has none. `is_lock`: the kernel
    itself said that it is a lock.
    """
    if kind == UNANSWERED and any(name in _CHILD_WAITS for name in stack):
        return WaitChannel(kind, CHILD_TO_END, "for its child process to end")
    if kind in _OF_OTHERS:
        return WaitChannel(kind, *_OF_OTHERS[kind])
    if kind in _OF_USERS:
        called, label, sleeps = _OF_USERS[kind]
        if not stack or any(function in sleeps for function in stack):
            return WaitChannel(kind, called, label)
        if kind in (FUTEX, SEMAPHORE):
            return WaitChannel(ORDINARY_SLEEP, stack[0], f"in {stack[0]}")
    if kind == STOPPED or _stop(stack):
        # Since 6.1 a sleeper is frozen where it sleeps: then no function tells.
        frozen = "in a frozen cgroup" if stack else "stopped"
        return WaitChannel(STOPPED, "a stop", _stop(stack) or frozen)
    return _in_the_kernel(stack, by_stack, is_lock=is_lock)


def _in_the_kernel(
    stack: tuple[str, ...], by_stack: tuple[str, ...], *, is_lock: bool
) -> WaitChannel:
    if not stack:
        return WaitChannel(OTHER, "unknown", "in the kernel")
    if any(name in _GRACE_PERIODS for name in stack[:_NEAR]):
        return WaitChannel(ORDINARY_SLEEP, stack[0], f"for a grace period of RCU ({stack[0]})")
    primitive = _primitive(stack[0], by_stack)
    if primitive is not None or is_lock:
        return _lock(stack, primitive)
    for group, found, words in (
        *_LIMITS,
        *_ANSWERS,
        (_WRITEBACK, WRITEBACK, "for dirty pages to be written"),
        (_ORDINARY_SLEEPS, ORDINARY_SLEEP, "in an ordinary sleep"),
        (_DEVICE, DEVICE, "for a device or file server"),
    ):
        name = next((name for name in stack if name in group), None)
        if name is not None:
            return WaitChannel(found, name, f"{words} ({name})")
    if not by_stack or any(name in _SIGNALS for name in by_stack):
        for lock in _LOCKS:
            # These sleep for nothing else themselves.
            if (lock.is_global or lock.name == MMAP_LOCK) and stack[0] in lock.callers:
                return WaitChannel(LOCK, lock.name, f"for {lock.name} ({stack[0]})", lock.is_global)
    return WaitChannel(OTHER, stack[0], f"in {stack[0]}")


def _stop(stack: tuple[str, ...]) -> str | None:
    """In words how a task stands still, None if it sleeps."""
    return next((words for group, words in _STOPS for name in stack if name in group), None)


def _primitive(innermost: str, by_stack: tuple[str, ...]) -> Functions | None:
    for release, primitive in (*_RELEASES, *_PASSED_ON):
        if any(name in release for name in by_stack[:_NEAR_RELEASE]):
            return primitive
    return next((group for _, group in _RELEASES if innermost in group), None)


def _lock(stack: tuple[str, ...], primitive: Functions | None) -> WaitChannel:
    """The nearest caller decides, then the next: functions between are inlined or only pass it
    on.
    """
    callers = [name for name in stack if name not in PRIMITIVES]
    for caller in callers[:_NEAR]:
        for lock in _LOCKS:
            if primitive in (None, lock.primitive) and caller in lock.callers:
                return WaitChannel(LOCK, lock.name, f"for {lock.name} ({caller})", lock.is_global)
    first = callers[0] if callers else "a system call"
    return WaitChannel(LOCK, f"the lock of {first}", f"for the lock of {first}")
