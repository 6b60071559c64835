"""Models of other libraries: one pass gives what one backward pass per example gives."""

import pytest
from tests.unit.gradients.architectures import EXAMPLES, build
from tests.unit.gradients.other_libraries import OTHERS, one_step_on
from tests.unit.gradients.test_architectures import PASSES, distances, engine_of


@pytest.mark.parametrize("sizes", [(1,) * EXAMPLES, (3, 1, 1, 1)])
@pytest.mark.parametrize("name", OTHERS)
def test_gradients_by_example_are_those_of_the_oracle(name: str, sizes: tuple[int, ...]) -> None:
    model, inputs, labels = build(OTHERS[name])
    engine = engine_of(model)
    for _ in range(PASSES):
        assert max(distances(engine, inputs, labels, sizes)) < 1e-9
    one_step_on(model)
    for _ in range(PASSES):
        assert max(distances(engine, inputs, labels, sizes)) < 1e-9
    assert not engine.taken_apart


def test_a_frozen_base_is_not_measured() -> None:
    model, inputs, labels = build(OTHERS["lora on distilbert"])
    engine = engine_of(model)
    distances(engine, inputs, labels, (1,) * EXAMPLES)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert set(engine.parameters) == trained
    assert sum(p.numel() for p in engine.parameters.values()) < 2000
