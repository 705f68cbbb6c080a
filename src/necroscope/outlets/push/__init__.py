"""The node's side: what it sends of its recording, through a bounded spool, and how it is sent."""
