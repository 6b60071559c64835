"""`python -m recollect`: the command, where its script is not on the path."""

from recollect.cli import main

if __name__ == "__main__":
    main()
