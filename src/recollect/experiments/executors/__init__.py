"""Who makes runs: worker processes of this machine, or the workers of a dask cluster."""
