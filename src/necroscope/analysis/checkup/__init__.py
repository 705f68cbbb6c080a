"""The check-up of a node from a second of looking: pure rules over the rows in memory, one file per
question.
"""
