"""What a core does in the kernel, by the outermost function that says it: below the entries that
every system call, work item, softirq and timer passes through.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import dropwhile
from typing import Final

from necroscope.analysis.functions import Functions, functions
from necroscope.analysis.main_path import SKID
from necroscope.analysis.stacks import INTERRUPT, Stacks

# Doors of the kernel and the corridors behind them: they say how it was entered, not what is done.
_ENTRIES: Final = functions(
    "entry_SYSCALL_64* do_syscall_64 x64_sys_call do_int80* __x64_sys_* __ia32_sys_* __arm64_sys_*"
    " __se_sys_* __do_sys_* invoke_syscall el0_svc* do_el0_svc el0t_64_sync* syscall_exit_*"
    " exit_to_user_mode* ret_from_fork* kthread worker_thread process_one_work"
    " process_scheduled_works task_work_run arch_do_signal_or_restart get_signal do_group_exit"
    " do_exit irqentry_exit* work_pending"
    # arch/arm64/kernel/entry-common.c: aborts are its page faults, of user space and of the kernel.
    " el0_da el0_ia el1_abort do_mem_abort el1h_64_sync*"
)
_FILES: Final = functions(
    "ksys_read vfs_read new_sync_read ksys_pread64 ksys_write vfs_write new_sync_write"
    " seq_read seq_read_iter seq_show traverse* proc_reg_* proc_pid_* proc_tid_* proc_single_show"
    " proc_reg_read_iter kernfs_fop_read_iter kernfs_fop_write_iter cgroup_file_write"
    " kernfs_seq_show sysfs_kf_seq_show ksys_lseek vfs_llseek *_llseek iterate_dir *_getdents*"
    " do_sys_open* do_filp_open path_openat do_iter_readv* vfs_readv do_readv do_preadv"
    " __fput ____fput __fput_sync fput filp_close filp_flush close_fd file_close_fd delayed_fput"
    " vfs_ioctl do_vfs_ioctl seq_open* single_open* do_splice* splice_*"
)
_SOCKETS: Final = functions(
    "__sys_* ___sys_* ____sys_* sock_sendmsg* __sock_sendmsg sock_recvmsg* sock_write_iter"
    " sock_read_iter netlink_sendmsg netlink_unicast* netlink_rcv_skb rtnetlink_rcv*"
    " netlink_recvmsg netlink_dump* __netlink_dump_start rtnl_dump* inet_bind* inet_sendmsg"
    " inet_recvmsg"
)
_TASKS: Final = functions(
    "kernel_clone copy_process create_new_namespaces unshare_nsproxy_namespaces ksys_unshare"
    " copy_namespaces exit_mm exit_task_namespaces mmput __mmput dup_mm"
    " bpf_map_free_deferred __sys_bpf"
)
_SOFTIRQS: Final = functions(
    "handle_softirqs __do_softirq do_softirq* run_ksoftirqd smpboot_thread_fn irq_exit*"
    " __irq_exit_rcu asm_* sysvec_* __sysvec_* common_interrupt __common_interrupt"
    " call_on_irqstack do_IRQ handle_irq* __handle_irq* handle_edge_irq handle_fasteoi_irq"
    " hrtimer_interrupt __hrtimer_run_queues hrtimer_run_softirq local_apic_timer_interrupt"
    " run_timer_softirq run_timer_base __run_timers __run_timer_base call_timer_fn expire_timers"
    " tasklet_action* tasklet_hi_action net_rx_action net_tx_action __napi_poll napi_poll"
    " napi_complete_done napi_threaded_poll* process_backlog rcu_core* rcu_do_batch"
    " blk_done_softirq blk_complete_reqs flush_smp_call_function_queue *_napi_poll* *_poll"
    " __flush_smp_call_function_queue generic_smp_call_function_single_interrupt"
    " netif_receive_skb* __netif_receive_skb* napi_gro_* gro_* ip_list_rcv ip_rcv*"
    " ip_local_deliver* ip_protocol_deliver_rcu ip_sublist_rcv* __local_bh_enable_ip"
    " el1h_64_irq* el0t_64_irq* el1_interrupt el0_interrupt __el0_irq_handler_common"
    " do_interrupt_handler call_on_irq_stack ____do_softirq gic_handle_irq"
    " generic_handle_domain_irq handle_percpu_devid_irq arch_timer_handler_*"
)
# Where nothing lies below them, these say what is done: a call that is one loop, a poll that is.
_LAST_RESORT: Final = functions(
    "__x64_sys_* __do_sys_* __se_sys_* __arm64_sys_* *_poll process_backlog rcu_do_batch"
    " iterate_dir traverse*"
)
ENTRIES: Final = _ENTRIES | _FILES | _SOCKETS | _TASKS | _SOFTIRQS | SKID
# What they do is proportional to the bytes or pages that were asked for, not to what exists.
MOVES_DATA: Final = functions(
    "copy_user_* rep_movs_* rep_stos_* _copy_to_user _copy_from_user _copy_to_iter"
    " _copy_from_iter copyin copyout copy_page* memcpy* __memcpy* memcpy_orig memset* __memset*"
    " clear_page* clear_user* csum_* crypto_* aes* sha* lz4* LZ4* zstd* ZSTD* crc32* *_xor_*"
    # arm64's own copies, whose plain names are weak aliases (SYM_FUNC_ALIAS_WEAK).
    " __arch_copy_* __arch_clear_user __pi_mem* __pi_copy_page __pi_clear_page"
)
# Too little of what the kernel does to be what it does.
_PART: Final = 0.08


@dataclass(frozen=True, slots=True)
class KernelSection:
    """`function` has most of it; `functions` are all that are entered by the same door. `share` is
    of all that ran. `path` leads from the function inward, `door` is who called it.
    """

    function: str
    functions: Functions
    share: float
    door: str
    path: tuple[str, ...]


def task_section(stacks: Stacks) -> KernelSection | None:
    """Of what tasks did by themselves: system calls and work items."""
    return _section(stacks.without(INTERRUPT), stacks.total)


def interrupt_section(stacks: Stacks) -> KernelSection | None:
    """Of what ran in interrupts and softirqs."""
    return _section(stacks.of(INTERRUPT), stacks.total, INTERRUPT)


def _section(own: Stacks, total: int, inside: Functions | None = None) -> KernelSection | None:
    """`inside`: what lies outside of these is whose turn it was, not what is done."""
    names, is_kernel = own.tree.names, own.tree.names.is_kernel()
    found: Counter[tuple[str, str]] = Counter()
    for path, weight in own.heaviest_paths(400):
        kernel = [names.name(function) for function in path if is_kernel[function]]
        if inside is not None:
            kernel = list(dropwhile(lambda name: name not in inside, kernel))
        place = next((i for i, name in enumerate(kernel) if name not in ENTRIES), None)
        if place is None and kernel and kernel[-1] in _LAST_RESORT:
            place = len(kernel) - 1
        if place is not None:
            found[kernel[place - 1] if place else "", kernel[place]] += weight
    if not found or not total:
        return None
    (door, function), _ = found.most_common(1)[0]
    family = [
        name
        for (by, name), weight in found.items()
        if by == door and weight >= _PART * found[door, function]
    ]
    group = functions(" ".join(family))
    below = own.of(group)
    inward = tuple(name for name in below.path(group) if name == function or name not in ENTRIES)
    return KernelSection(function, group, below.total / total, door, inward[:8])


def moves_data(stacks: Stacks, section: KernelSection) -> float:
    """Of the section: how much of it copies, clears or computes over bytes."""
    own = stacks.of(section.functions)
    return own.self_share(MOVES_DATA) if own.total else 0.0
