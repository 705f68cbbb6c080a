"""Thinks: from the tables of a recording to incidents, each with a verdict. Pure: no clock, disk,
network or printing.

`recording -> episodes -> incidents (joined with events) -> a case each -> causes -> origin ->
verdict -> Report`
"""
