"""Other tools' files in and out: perf.data, perf script, folded stacks, mpstat and dmesg are read
here.
"""
