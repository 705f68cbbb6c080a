"""Ask the past: which segments a recording has, and what they hold in a window of time."""
