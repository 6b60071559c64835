"""`recollect inspect`: look into a memory."""

import json
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.terminal.output import CONTACT_SHEETS, check_output


def inspect(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            help="A file that `Learner.save` wrote, or the folder of one.", metavar="CHECKPOINT"
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Picture of images with extreme scores."),
    ] = None,
    images: Annotated[int, typer.Option(min=1, help="Images on each side.")] = 32,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead, for a monitor.")
    ] = False,
) -> None:
    """Show what a memory holds: classes, ages, replays and scores, and its extreme images."""
    if output is not None:
        check_output(output, CONTACT_SHEETS)
    # What reads checkpoints takes its time to import; help and a mistake are told without it.
    from recollect.cli.terminal.memories import describe, draw
    from recollect.reports.inspection import facts_of, read_saved_memory

    saved = read_saved_memory(checkpoint)
    if output is not None:
        draw(saved, output, images)
    if as_json:
        print(json.dumps(facts_of(saved)))
        return
    describe(saved)
    if output is not None:
        print(f"\nwrote {output}: images with the highest and the lowest {saved.ranking}")
