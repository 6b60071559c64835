"""The `recollect` command: one file a subcommand."""


def main() -> None:
    """Run the command."""
