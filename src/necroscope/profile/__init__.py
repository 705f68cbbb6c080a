"""From perf records to named stacks: the one road for live rings and for perf.data files. Its inner
loop is native (core/).
"""
