"""The kernel's perf structures: what live rings and perf.data files have in common. Standard
library only.
"""
