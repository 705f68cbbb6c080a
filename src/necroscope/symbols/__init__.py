"""Addresses to names: kernel symbols, ELF files, perf maps, the vdso, and the process that looks
them up.
"""
