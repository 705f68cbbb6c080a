"""What people look at: each view shows recorded rows or a report in one medium, and no view imports
another.
"""
