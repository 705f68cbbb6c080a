"""Jobs: who of a job's members stopped first, why, and what that has to do with a core."""
