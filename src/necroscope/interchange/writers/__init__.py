"""Profiles in the formats that other viewers open; `formats.py` lists them."""
