"""Where numbers come from: the spec and the command of each, and the circumstances."""

import json
from collections.abc import Mapping, Sequence

from recollect.reports.cells import CellRuns, final_accuracy, final_forgetting
from recollect.reports.names import benchmark_title
from recollect.reports.numbers import percent, seconds
from recollect.reports.page.comparison import count_seeds
from recollect.reports.page.parts import escape, packed, table
from recollect.reports.page.plots import slug


def provenance(cells: Sequence[CellRuns], code: Mapping[str, str]) -> str:
    """Return the spec, the command and the circumstances of every run.

    Args:
        cells: The runs.
        code: Links to the code that made them, by its digest.
    """
    items = "".join(_origin(cell, code) for cell in cells)
    return (
        '<section id="origins"><h2>Behind the numbers</h2><p class="note">The spec, the command '
        f"and the circumstances of every run.</p>{items}</section>"
    )


def _origin(cell: CellRuns, code: Mapping[str, str]) -> str:
    first = cell.records[0]
    facts = [
        ("Spec hash", f"<code>{escape(cell.spec_hash)}</code>"),
        ("Protocol", escape(cell.protocol)),
        ("Memory", f"{cell.capacity:,} slots" if cell.capacity else "none"),
        ("Passes", escape(cell.passes)),
        ("Versions", escape(_joined({_versions(record.versions) for record in cell.records}))),
        ("Commit", escape(_joined({record.commit or "none" for record in cell.records}))),
        ("Code", _code({record.versions.get("code", "") for record in cell.records}, code)),
        ("Machine", escape(_joined({_pairs(record.machine) for record in cell.records}))),
        ("Threads", escape(_joined({str(record.threads) for record in cell.records}))),
    ]
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    accuracy, forgotten = cell.by_seed(final_accuracy), cell.by_seed(final_forgetting)
    rows = [
        (
            "",
            [
                str(record.seed),
                percent(accuracy[record.seed], digits=2),
                percent(forgotten[record.seed], digits=2),
                seconds(record.wall_seconds),
                str(record.num_resumes),
                escape(record.started_at),
                _command(record.command),
            ],
        )
        for record in cell.records
    ]
    heading = ["Seed", "Accuracy, %", "Forgetting, %", "Wall", "Resumed", "Started", "Command"]
    runs = table(heading, rows, caption="Runs", css="runs", is_caption_hidden=True)
    spec = f"<pre>{escape(_pretty(first.spec))}</pre>"
    title = f"{benchmark_title(cell.benchmark)}: {cell.label}"
    content = f"<dl>{listed}</dl><h4>Runs</h4>{runs}<h4>Spec</h4>{spec}"
    return (
        f'<details class="origin" id="{slug(cell.name)}" data-of="{escape(cell.benchmark)}" '
        f'data-method="{escape(cell.method)}"><summary>{escape(title)} '
        f"<small>{count_seeds(len(cell.records))}, spec {escape(cell.spec_hash[:8])}</small>"
        "</summary>"
        f"{packed(content, when='opened')}</details>"
    )


def _command(command: str) -> str:
    return (
        f"<code>{escape(command)}</code> "
        f'<button type="button" class="copy" data-copy="{escape(command)}">Copy</button>'
    )


def _pretty(spec: str) -> str:
    try:
        return json.dumps(json.loads(spec), indent=2, sort_keys=True)
    except json.JSONDecodeError:
        return spec


def _versions(versions: dict[str, str]) -> str:
    return _pairs({name: found for name, found in versions.items() if name != "code"})


def _code(digests: set[str], links: Mapping[str, str]) -> str:
    """Name the code of runs, and lead to it where the store keeps it."""
    return "; ".join(
        f'<a href="{escape(links[digest])}"><code>{escape(digest)}</code></a>'
        if digest in links
        else f"<code>{escape(digest)}</code>"
        if digest
        else "not kept"
        for digest in sorted(digests)
    )


def _pairs(facts: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items()) or "not recorded"


def _joined(values: set[str]) -> str:
    return "; ".join(sorted(values))
