from pathlib import Path

import pytest
import torch

from recollect.errors import ConfigError
from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.spec import GIVEN, apply_overrides, load_spec


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(text)
    return path


def problems_of(tmp_path: Path, text: str, *overrides: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as raised:
        load_spec(written(tmp_path, text), overrides=overrides)
    return dict(raised.value.problems)


def test_five_mistakes_are_reported_as_five_each_with_its_path(tmp_path: Path) -> None:
    text = """
    benchmark = "mnist-spilt"
    memmory = [500]
    [optimizer]
    lr = "fast"
    [methods.er-p]
    step_size = -1.0
    norm_flor = 2.0
    """
    problems = problems_of(tmp_path, text)
    assert problems == {
        "memmory": "unknown key; did you mean `memory`?",
        "optimizer.lr": "is 'fast'; it should be a number.",
        "benchmark": "is 'mnist-spilt'; did you mean `mnist-split`?",
        "methods.er-p.norm_flor": "unknown key; did you mean `norm_floor`?",
        "methods.er-p.step_size": problems["methods.er-p.step_size"],
    }
    assert "-1.0" in problems["methods.er-p.step_size"]


def test_the_message_counts_the_problems_and_names_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, 'benchmark = "mnist-split"\nseeds = 0\n[methods.er]\n[model]\nx = 1')
    with pytest.raises(ConfigError, match=r"spec\.toml has 2 problems:\n  seeds: is 0; .*\n  mode"):
        load_spec(path)


@pytest.mark.parametrize(
    ("text", "path", "rule"),
    [
        ("[methods.err]", "methods.err", "'err' is no method; did you mean `er`?"),
        ("[methods.mine]\nbase = 'er-x'", "methods.mine.base", "did you mean `er-"),
        ("[methods.'a b']", "methods.a b", "small letters, digits, hyphens and "),
        ("[methods.er]\niterations = 0", "methods.er.iterations", "whole number from 1"),
        ("[methods.er]\nlr = 0.0", "methods.er.lr", "greater than 0"),
        ("[methods.er]\npasses = 'grouped'", "methods.er", "rule has no groups"),
        ("[methods.er-mir]\ncandidates = 3", "methods.er-mir.candidates", "fewer than `replay`"),
        ("[methods.er-c]\npick = 'best'", "methods.er-c.pick", "'highest' or 'proportional'"),
        ("[methods.er-p]\nstep_size = nan", "methods.er-p.step_size", "finite number"),
        ("[methods]\ner = 3", "methods.er", "it should be a dictionary"),
        ("methods = {}", "methods", "is empty"),
        ("compare = ['er-p']\n[methods.er]", "compare.0", "'er-p', which has no table"),
        ("[model]\nhidden = [5]\n[methods.er]", "model.hidden", "only an MLP"),
        ('[model]\nnorm = "group"\n[methods.er]', "model.norm", "only the ResNet"),
        (
            "[optimizer]\nname = 'adam'\nmomentum = 0.9\n[methods.er]",
            "optimizer.momentum",
            "only sgd",
        ),
        ("protocol = 'raptormai'\n[methods.er]", "protocol", "paper, mir-official"),
    ],
)
def test_each_rule_says_what_would_be_right(
    tmp_path: Path, text: str, path: str, rule: str
) -> None:
    problems = problems_of(tmp_path, f"benchmark = 'mnist-split'\n{text}")
    assert list(problems) == [path]
    assert rule in problems[path]


def test_a_missing_benchmark_is_said_to_be_missing(tmp_path: Path) -> None:
    told = "is missing; a spec needs it, or a [data] table."
    assert problems_of(tmp_path, "[methods.er]") == {"benchmark": told}


@pytest.mark.parametrize(("text", "reason"), [("a = [", "is not TOML"), (None, "cannot be read")])
def test_a_file_that_cannot_be_read_is_one_problem(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    path = tmp_path / "absent.toml" if text is None else written(tmp_path, text)
    with pytest.raises(ConfigError, match=f"{path.name} has 1 problem:\n  {reason}"):
        load_spec(path)


def test_an_override_is_read_as_toml_and_forgets_how_the_old_value_was_found(
    tmp_path: Path,
) -> None:
    path = written(
        tmp_path,
        'benchmark = "mnist-split"\n[optimizer]\nlr = 1.0\nfound = "by hand"\n[methods.er]\n',
    )
    spec = load_spec(path, overrides=["optimizer.lr=0.5", "learner.passes=separate", "memory=[7]"])
    assert (spec.optimizer.lr, spec.optimizer.found) == (0.5, GIVEN)
    assert (spec.learner.passes, spec.memory) == ("separate", (7,))


def test_an_override_that_cannot_be_written_is_a_problem() -> None:
    given = ["seeds.x=1", "nonsense", ".=1", "benchmark = cifar10-split", "protocol=raptormai"]
    problems = apply_overrides({"seeds": 1}, given)
    assert [message for _, message in problems] == [
        "is 'seeds.x=1', but `seeds` is not a table.",
        "is 'nonsense'; write it as path.to.key=value.",
        "is '.=1'; write it as path.to.key=value.",
        "is 'benchmark = cifar10-split'; name the benchmark as the argument, or in a spec of your "
        "own.",
        "is 'protocol=raptormai'; choose the protocol with --protocol, which brings its settings.",
    ]


def test_another_protocol_brings_its_own_settings_unless_they_are_given(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        'benchmark = "mnist-split"\nmemory = [9]\n[optimizer]\nlr = 0.05\n[learner]\nreplay = 3\n'
        "[methods.er]\n",
    )
    other = load_spec(path, protocol="mir-official", overrides=["learner.replay=4"])
    assert (other.optimizer.lr, other.memory, other.learner.replay) == (None, None, 4)
    same = load_spec(path, protocol="paper")
    assert (same.optimizer.lr, same.memory, same.learner.replay) == (0.05, (9,), 3)


def test_another_protocol_is_not_bound_by_what_methods_of_the_package_say() -> None:
    path = config_path("mnist-split")
    given = ["methods.er-c.lr=0.3", "methods.er-c.replay=4"]
    spec = load_spec(path, protocol="mir-official", overrides=given)
    er, er_p, er_c = cells(spec, methods=["er", "er-p", "er-c"])
    assert er.optimizer["lr"] == 0.1
    assert er.found == dict.fromkeys(
        ["optimizer", "methods.er"], "default of protocol mir-official"
    )
    assert er_p.optimizer["lr"] == 0.1
    assert er_p.options["step_size"] == load_spec(path).methods["er-p"].options["step_size"]
    assert er_p.found["methods.er-p"].startswith("studies.tune mnist-split: ")
    assert er_p.found["methods.er-p"].endswith("; but lr of protocol mir-official")
    assert (er_c.optimizer["lr"], er_c.learner["replay"]) == (0.3, 4)
    assert er_c.found["methods.er-c"] == GIVEN
    assert load_spec(path, protocol="paper") == load_spec(path)


@pytest.mark.parametrize("name", ["mnist-split", "mnist-permuted"])
def test_the_identity_tells_a_protocol_with_its_own_network_from_one_without(name: str) -> None:
    path = config_path(name)
    (own,) = cells(load_spec(path, protocol="mir-official"), methods=["er"])
    assert own.model == {"name": "mlp", "hidden": [400, 400]}
    # How the protocol was run when it had the network of the paper.
    narrow = ["model.hidden=[100, 100]"]
    (before,) = cells(load_spec(path, protocol="mir-official", overrides=narrow), methods=["er"])
    assert before.model == {"name": "mlp", "hidden": [100, 100]}
    assert own.spec_hash != before.spec_hash


@pytest.mark.parametrize("model", ["", '[model]\nname = "usual"\n', '[model]\nname = "mlp"\n'])
def test_widths_that_the_protocol_decides_are_written_out(tmp_path: Path, model: str) -> None:
    text = f'benchmark = "mnist-split"\nprotocol = "mir-official"\n{model}[methods.er]\n'
    (cell,) = cells(load_spec(written(tmp_path, text)))
    assert cell.model == {"name": "mlp", "hidden": [400, 400]}
    built, learner = build(cell, seed=3)
    theirs = built.model().state_dict()
    assert all(torch.equal(value, theirs[key]) for key, value in learner.model.state_dict().items())


def test_another_protocol_leaves_what_a_spec_of_ones_own_says_of_a_method(tmp_path: Path) -> None:
    text = 'benchmark = "mnist-split"\n[methods.er-fast]\nbase = "er"\nlr = 0.3\n'
    spec = load_spec(written(tmp_path, text), protocol="mir-official")
    assert cells(spec)[0].optimizer["lr"] == 0.3


def test_a_method_of_the_library_that_is_asked_for_needs_no_table(small_spec: Path) -> None:
    spec = load_spec(small_spec, methods=["er-ace", "der++", "er"])
    assert spec.methods.keys() - load_spec(small_spec).methods.keys() == {"er-ace", "der++"}
    (dark,) = cells(spec, methods=["der++"])
    assert (dark.base, dark.options["beta"]) == ("der++", 0.5)
    with pytest.raises(ConfigError, match="has no 'er-acee'; did you mean `er-ace`"):
        cells(load_spec(small_spec, methods=["er-ace", "er-acee"]), methods=["er-acee"])


def test_a_method_without_a_table_is_asked_whether_it_goes_with_the_rest() -> None:
    said = ['learner.passes="separate"', 'learner.augment=["RandomCrop"]']
    with pytest.raises(ConfigError, match=r"methods\.scr"):
        load_spec(config_path("mnist-split"), overrides=said, methods=["scr"])
