"""A live recording to an OpenTelemetry collector: stacks as profiles, events and incidents as
logs.
"""
