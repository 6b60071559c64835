"""`recollect new`: a first spec for data of your own."""

from pathlib import Path
from typing import Annotated

import typer

from recollect.atomic_files import write_text
from recollect.cli.terminal.output import write_explained
from recollect.errors import ConfigError


def new(
    spec: Annotated[Path, typer.Argument(metavar="FILE", help="The spec to write: my.toml.")],
    data: Annotated[
        str,
        typer.Option(
            metavar="PATH|NAME",
            help="A folder of images, one subfolder per class; a .csv, .parquet, .npz or .npy "
            "file; or a name of `recollect data list`.",
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it is there.")
    ] = False,
) -> None:
    """Write a first spec for data of your own, with comments, from what is found there.

    `recollect run my.toml` then runs it. Paths in a spec are relative to the
    folder in which commands are called.
    """
    if spec.suffix != ".toml":
        problem = f"is {str(spec)!r}; end its name in .toml, by which `recollect run` knows it."
        raise ConfigError("the command", [("FILE", problem)])
    if spec.exists() and not force:
        problem = f"is {str(spec)!r}, which is there; take another name, or replace it by --force."
        raise ConfigError("the command", [("FILE", problem)])
    # Looking into data takes numpy; a mistake in the command is told without it.
    from recollect.experiments.specs.data.first_spec import first_spec

    text = first_spec(data)
    with write_explained(spec):
        write_text(spec, text)
    print(f"wrote {spec}. Read it, then: recollect run {spec}")
