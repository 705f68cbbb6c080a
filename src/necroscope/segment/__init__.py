"""The recording format: journal blocks while a segment is live, Parquet once it is sealed, and the
readers of both.
"""
