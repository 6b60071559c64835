"""All or nothing: what a step or a look changes is remembered and put back."""
