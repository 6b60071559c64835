"""`[data]` of a spec: data of the user's, checked, told apart by its digest, and cut."""
