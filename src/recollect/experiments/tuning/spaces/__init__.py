"""Where a search looks: ranges that parts declare, and what a spec says otherwise."""
