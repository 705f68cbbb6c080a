"""Call trees as arrays, and the samples that end in them: one algebra for the store, the analysis,
the writers and the fleet.
"""
