"""What the source may not say, found by walking its syntax trees."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect

SOURCE = Path(recollect.__file__).parent
FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))

# Those who make, score or show a benchmark know of tasks and segments; who learns does not.
MAY_SAY_TASK = (
    "streams", "metrics", "experiments", "paper", "reports", "benchmarks", "cli", "datasets",
    "testing",
)  # fmt: skip
# The one needs torch's initialisation, the other lends a generator to dropout.
# `watching.py` looks at the global generators to say whether a policy drew from them.
# Augmentations draw from torch's generator like any library's, and the learner lends it its own.
MAY_USE_GLOBAL_RANDOMNESS = (
    "models/seeded.py", "rollback/generators.py", "testing/watching.py", "augment/crop.py",
    "augment/flip.py", "augment/colour.py",
)  # fmt: skip

DRAWS = {
    "bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "randperm",
}  # fmt: skip
DRAWS_IN_PLACE = {
    "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_",
    "uniform_",
}  # fmt: skip
SEEDS = {"manual_seed", "seed"}


def tree(path: Path) -> ast.Module:
    return ast.parse((SOURCE / path).read_text(), str(path))


def names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every identifier of a file: of variables, attributes, arguments, functions, imports."""
    for node in ast.walk(tree(path)):
        line = getattr(node, "lineno", 0)
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield line, value


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def draws_from_global_randomness(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                modules = [f"{node.module}.{name}" for name in modules]
            for module in modules:
                if module.startswith(
                    ("random.", "numpy.random")
                ):  # `import random` may make a Random
                    yield f"{path}:{node.lineno} imports {module}"
        if not isinstance(node, ast.Call):
            continue
        called = dotted(node.func)
        owner, _, function = called.rpartition(".")
        has_generator = any(keyword.arg in ("generator", "rng") for keyword in node.keywords)
        is_global = (
            (owner in ("torch", "torch.random", "torch.cuda") and function in SEEDS)
            or (owner == "torch" and function in DRAWS and not has_generator)
            or (function in DRAWS_IN_PLACE and not has_generator)
            or (owner == "random" and not (function == "Random" and node.args))
            or (owner in ("np.random", "numpy.random") and function not in ("default_rng", "PCG64"))
            or (called in ("np.random.default_rng", "numpy.random.default_rng") and not node.args)
        )
        if is_global:
            yield f"{path}:{node.lineno} calls {called}"


@pytest.mark.parametrize("path", FILES, ids=str)
def test_only_those_who_benchmark_speak_of_tasks_and_segments(path: Path) -> None:
    if path.parts[0].removesuffix(".py").startswith(MAY_SAY_TASK):
        return
    said = [f"{path}:{line} {name}" for line, name in names(path) if speaks_of_tasks(name)]
    assert said == []


def speaks_of_tasks(name: str) -> bool:
    return any(word in name.lower() for word in ("task", "segment"))


@pytest.mark.parametrize("path", FILES, ids=str)
def test_randomness_comes_from_generators_that_are_handed_in(path: Path) -> None:
    if path.as_posix() in MAY_USE_GLOBAL_RANDOMNESS:
        return
    assert list(draws_from_global_randomness(path)) == []


@pytest.mark.parametrize("path", MAY_USE_GLOBAL_RANDOMNESS)
def test_the_check_would_notice_global_randomness(path: str) -> None:
    assert list(draws_from_global_randomness(Path(path))) != []


def test_the_check_would_notice_a_task(tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text("def observe(batch, task_id): ...\nsegments = 1\n")
    found = [name for _, name in names(tmp_path / "it.py") if speaks_of_tasks(name)]
    assert sorted(found) == ["segments", "task_id"]
