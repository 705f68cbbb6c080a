"""A node's recording as Prometheus metrics: worst-core figures and histograms, never a series per
core.
"""
