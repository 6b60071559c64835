"""Learners at home in other tools, each in a file that is imported by its own name.

A file needs the tool that it is named after.
"""
