"""A real cluster on one machine: nodes are network namespaces with a recorder each, jobs are real
process groups of torch over gloo, and the truth of every run is known.
"""
