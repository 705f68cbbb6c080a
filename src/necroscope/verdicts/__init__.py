"""The only part that runs the analysis over a live recording: one process keeps one ledger of
incidents, and every outlet and view reads it.
"""
