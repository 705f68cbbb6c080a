"""A trial on a fleet: nodes by lot, a treatment with its undo, and a ledger that survives whatever
ends it half-way.
"""
