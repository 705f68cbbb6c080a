"""What the kernel says of cores and network devices below /sys, and by the ethtool ioctls."""
