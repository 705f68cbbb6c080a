"""Control groups, v1, v2 and hybrid: how many live, how many are dead and held, and what their
limits did.
"""
