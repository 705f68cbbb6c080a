"""Stacks, cgroup ledger, softirq delay and the log's clock: everything asked through
perf_event_open and bpf.
"""
