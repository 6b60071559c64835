"""Tables, figures and the page people look at.

Nothing is imported here: `recollect.reports.statistics` must not wait for matplotlib.
"""
