# Programs for the python of the peers' environment; here they cannot be imported.
collect_ignore = ["avalanche_run.py", "losses_run.py", "river_run.py"]
