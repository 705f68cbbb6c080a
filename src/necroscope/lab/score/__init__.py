"""The score: how often the verdicts on the lab's recordings are right, level by level, and against
three simple baselines.
"""
