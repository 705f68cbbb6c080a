"""Jobs: which processes of this node are ranks, tasks or workers of one, and how they get on."""
