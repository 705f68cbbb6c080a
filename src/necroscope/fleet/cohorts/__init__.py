"""Which difference between nodes goes with their failures: pure statistics on numpy, without disk,
clock or lake.
"""
