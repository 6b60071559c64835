"""Tables, figures and the report page.

Nothing is imported here: `recollect.reports.statistics` must not wait for matplotlib.
"""
