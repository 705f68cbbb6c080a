"""What tells this node from others: collected by a child process that may hang."""
