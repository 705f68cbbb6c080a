"""The overnight experiment: a job again and again under the recorder, until what is waited for
happens.
"""
