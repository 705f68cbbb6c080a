"""Ask the kernel: one file per interface, each a pure `parse` and a thin `Source` that takes the
root it reads below.
"""
