"""Counters of the kernel below /proc, one file per interface."""
