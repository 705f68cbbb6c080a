"""The lab: provokes real incidents on this kernel, measures and undoes them, and scores the
verdicts on their recordings.
"""
