"""Which functions are a core with nothing to do."""

from typing import Final

# The innermost function of a core with nothing to do, by cpuidle driver and architecture.
IDLE_FUNCTIONS: Final = frozenset(
    (
        *(
            "acpi_idle_do_entry",
            "acpi_processor_ffh_cstate_enter",
            "acpi_safe_halt",
            "arch_cpu_idle",
            "cpu_do_idle",
        ),
        *(
            "cpu_idle_poll",
            "cpuidle_enter_state",
            "default_idle",
            "default_idle_call",
            "haltpoll_enter",
            "intel_idle",
        ),
        *(
            "intel_idle_hlt",
            "intel_idle_ibrs",
            "intel_idle_irq",
            "intel_idle_xstate",
            "io_idle",
            "mwait_idle",
        ),
        *(
            "mwait_idle_with_hints",
            "native_safe_halt",
            "poll_idle",
            "psci_cpu_suspend_enter",
            "pv_native_safe_halt",
        ),
        *("tdx_safe_halt", "xen_safe_halt"),
    )
)
