"""The command line: one file per command, joined in `main`."""
