"""The best settings as a spec that `recollect run` takes, with how they were found."""

import json
import shlex
import tomllib
from collections.abc import Mapping
from typing import Any

from recollect.choices import options_of as options_by_name
from recollect.errors import ConfigError
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.method_tables import MethodTable
from recollect.experiments.specs.spec import apply_overrides, check_spec
from recollect.experiments.tuning.choose import Standing
from recollect.experiments.tuning.plan import Plan
from recollect.experiments.tuning.spaces.declared import OF_THE_OPTIMIZER
from recollect.experiments.tuning.study import Budget, Settings, Study


def best_spec(plan: Plan, study: Study, best: Mapping[str, Standing], *, name: str) -> str:
    """Return the spec as TOML.

    Args:
        plan: The search.
        study: What it tried.
        best: The chosen trial of each method.
        name: Of the file, for the commands in it.

    Raises:
        ConfigError: It would not run what the chosen trials ran.
    """
    content = {key: v for key, v in plan.spec.said.items() if key not in ("methods", "tune")}
    content["compare"] = [*best, *study.inherited]
    if plan.memory is not None:
        content["memory"] = [plan.memory]
    methods: dict[str, Any] = {}
    for method, standing in best.items():
        found = as_tables(method, _method(plan, study, standing))
        methods |= found.pop("methods")
        for table, own in found.items():
            content[table] = {**content.get(table, {}), **own}
    methods |= {method: _inherited(plan, study, method, best) for method in study.inherited}
    if costs := content.get("stream", {}).get("cost"):
        kept = {key: cost for key, cost in costs.items() if key in ("found", *methods)}
        content["stream"] = {**content["stream"], "cost": kept}
    said = [line for method in best for line in _how_found(plan, study, best[method], name)]
    head = [
        f"Settings of {plan.spec.benchmark} that a search chose on validation data.",
        *([f"Searched by `{study.command}`."] if study.command else []),
        "",
        *said,
        "`recollect run` without these --set evaluates on test data.",
    ]
    comments = "\n".join(f"# {line}".rstrip() for line in head)
    text = f"{comments}\n\n{toml_text({**content, 'methods': methods})}"
    _check(plan, text, best, name)
    return text


def found_in_words(study: Study, standing: Standing) -> str:
    """Say in one line how the settings of a method were found."""
    budget = study.budget
    told = f"recollect tune {study.name}: best of {budget.all_trials} trials on validation data"
    told += f" (seeds {_span(budget.first_seeds)})"
    if budget.fresh_seeds:
        told += f", chosen among {budget.finalists} on fresh seeds {_span(budget.second_seeds)}"
    return f"{told}; trial {standing.trial.number}"


def inherited_settings(study: Study, method: str, best: Mapping[str, Standing]) -> Settings:
    """Return what a method takes over of what was found for others; the first one's stands."""
    known = {"lr", *options_by_name(method)}
    settings: Settings = {}
    for source in reversed(study.inherited[method].sources):
        found = best[source].trial.settings
        settings |= {key: value for key, value in found.items() if key in known}
    return {**study.inherited[method].settings, **settings}


def as_tables(method: str, settings: Settings) -> dict[str, Any]:
    """Return settings as the tables of a spec: a method's own, and the optimizer's."""
    own = {k: v for k, v in settings.items() if not k.startswith(OF_THE_OPTIMIZER)}
    shared = {
        key.removeprefix(OF_THE_OPTIMIZER): value
        for key, value in settings.items()
        if key.startswith(OF_THE_OPTIMIZER)
    }
    return {**({"optimizer": shared} if shared else {}), "methods": {method: own}}


def toml_text(content: Mapping[str, Any], path: str = "") -> str:
    """Write nested tables as TOML, plain values before tables."""
    plain = {k: v for k, v in content.items() if not isinstance(v, Mapping) and v is not None}
    lines = [f"[{path}]"] if path and plain else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    parts = ["\n".join(lines)] if lines else []
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            parts.append(toml_text(value, f"{path}.{_key(key)}".lstrip(".")).rstrip("\n"))
    return "\n\n".join(parts) + "\n"


def _method(plan: Plan, study: Study, standing: Standing) -> dict[str, Any]:
    method = standing.trial.method
    table = _as_said(plan.spec.methods[method]) | standing.trial.settings
    return {**table, "found": found_in_words(study, standing)}


def _as_said(table: MethodTable) -> dict[str, Any]:
    """Return all that a method's table says or leaves to defaults."""
    base = {} if table.base == table.name else {"base": table.base}
    parts = {part: found["where"] for part, found in table.parts.items()}
    return {**base, **parts, **table.learner, **table.options}


def _inherited(
    plan: Plan, study: Study, method: str, best: Mapping[str, Standing]
) -> dict[str, Any]:
    table = _as_said(plan.spec.methods[method]) if method in plan.spec.methods else {}
    sources = " and ".join(study.inherited[method].sources)
    how = f"as {sources}, recollect tune {study.name}; not searched for"
    return {**table, **inherited_settings(study, method, best), "found": how}


def _how_found(plan: Plan, study: Study, standing: Standing, name: str) -> list[str]:
    budget, trial = study.budget, standing.trial
    judged = standing.fresh if budget.fresh_seeds else standing.first
    seeds = budget.second_seeds if budget.fresh_seeds else budget.first_seeds
    assert judged.mean is not None
    words = ["recollect", "run", "--spec", name, "--method", trial.method]
    words += ["--seeds", f"{seeds.start}:{seeds.stop}"]
    for override in plan.while_searching:
        words += ["--set", override]
    return [
        f"{trial.method}: trial {trial.number} of {len(study.trials[trial.method])}, "
        f"{_budget(budget)}.",
        f"  validation mean {judged.mean!r} over seeds {_span(seeds)}; "
        f"spec {trial.spec_hash[:12]}. Once more:",
        f"  {shlex.join(words)}",
        "",
    ]


def _budget(budget: Budget) -> str:
    first = f"{budget.seeds} seeds each (from {budget.first_seeds.start})"
    if not budget.fresh_seeds:
        return f"{first}, of which the best is chosen"
    fresh = f"{budget.fresh_seeds} fresh seeds (from {budget.second_seeds.start})"
    return f"{first}; the best {budget.finalists} on {fresh}, which alone chose"


def _check(plan: Plan, text: str, best: Mapping[str, Standing], name: str) -> None:
    """See that the spec runs what was found, to the last setting."""
    raw = tomllib.loads(text)
    problems = apply_overrides(raw, plan.while_searching)
    spec = check_spec(raw, source=name, problems=problems)
    for method, standing in best.items():
        (cell,) = cells(spec, methods=[method])
        if cell.spec_hash != standing.trial.spec_hash:
            told = "would not run what the chosen trial ran; please report this."
            raise ConfigError(name, [(f"methods.{method}", told)])


def _span(seeds: range) -> str:
    return f"{seeds[0]} to {seeds[-1]}"


def _key(key: str) -> str:
    is_bare = all(c.isascii() and (c.isalnum() or c in "-_") for c in key)
    return key if key and is_bare else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(entry) for entry in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
