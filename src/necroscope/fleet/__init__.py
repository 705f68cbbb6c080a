"""7 Many nodes: what they push, the collector that takes it, the lake it lies in, and the questions
over it.
"""
