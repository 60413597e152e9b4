"""The part of a capture that is the same for every framework: configuration, schedule, steps, budget, reports.

framework.py says what a framework has to tell; msprobe.pytorch and msprobe.mindspore do so. Nothing here imports one.
"""
