"""What a node tells others about its recording: metrics, notices, a collector. Each reads the
recording as any reader would.
"""
