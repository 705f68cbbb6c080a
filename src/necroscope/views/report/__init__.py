"""A report shown: as a page of text for a terminal, and as JSON."""
