"""The command: `python -m studies.readings STUDY`."""

from studies.readings.studies import main

if __name__ == "__main__":
    main()
