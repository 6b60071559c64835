"""Run by `test_peers.py` with the python of the peers' environment: our step on their stream."""

import json

import torch
from perf.peers.worker import declare_torchvision_operators

_kept = declare_torchvision_operators()

from avalanche.benchmarks import (  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
    benchmark_from_datasets,
    split_online_stream,
)
from avalanche.benchmarks.utils import (  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
    _make_taskaware_tensor_classification_dataset as tensor_dataset,
)
from avalanche.evaluation.metrics import (  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
    accuracy_metrics,
    loss_metrics,
)
from avalanche.training.plugins import (  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
    EvaluationPlugin,
)

import recollect  # noqa: E402
from recollect.integrations.avalanche import LearnerStrategy  # noqa: E402
from recollect.models import mlp, seeded  # noqa: E402

CLASSES = 6


def examples(seed: int, classes: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    centres = torch.randn(CLASSES, 12, generator=torch.Generator().manual_seed(1))
    labels = torch.tensor(classes)[torch.randint(len(classes), (60,), generator=rng)]
    return centres[labels] + torch.randn(60, 12, generator=rng) / 2, labels


def learner() -> recollect.Learner:
    model = seeded(lambda: mlp(12, CLASSES), 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    # Turned round, so that an evaluation which passed the learner by would be wrong.
    return recollect.method(
        "er-p", model, optimizer, capacity=30, replay=5, seed=3, transform=lambda x: x.flip(1)
    )


def weights(trained: recollect.Learner) -> list[torch.Tensor]:
    return [parameter.detach() for parameter in trained.model.parameters()]


def main() -> None:
    parts = [examples(k, (2 * k, 2 * k + 1)) for k in range(3)]
    held_out = [examples(10 + k, (2 * k, 2 * k + 1)) for k in range(3)]
    benchmark = benchmark_from_datasets(
        train=[tensor_dataset(x, y, task_labels=0) for x, y in parts],
        test=[tensor_dataset(x, y, task_labels=0) for x, y in held_out],
    )
    metrics = EvaluationPlugin(
        accuracy_metrics(stream=True, minibatch=True), loss_metrics(minibatch=True)
    )
    ours, online, own = learner(), learner(), learner()
    strategy = LearnerStrategy(ours, evaluator=metrics)
    for experience in benchmark.train_stream:
        strategy.train(experience, shuffle=False)
    found = strategy.eval(benchmark.test_stream)
    mini = LearnerStrategy(online, evaluator=EvaluationPlugin())
    for experience in split_online_stream(benchmark.train_stream, 10, shuffle=False):
        mini.train(experience, shuffle=False)
    report = None
    for inputs, labels in parts:
        for start in range(0, 60, 10):
            report = own.observe(inputs[start : start + 10], labels[start : start + 10])
    assert report is not None
    right = total = 0
    for inputs, labels in held_out:
        right += int((own.predict(inputs).argmax(1) == labels).sum())
        total += len(labels)
    (accuracy,) = (value for name, value in found.items() if name.startswith("Top1_Acc_Stream"))
    (loss,) = (v for name, v in metrics.get_last_metrics().items() if name.startswith("Loss_MB"))
    print(
        json.dumps(
            {
                "same bits": all(map(torch.equal, weights(ours), weights(own))),
                "same bits online": all(map(torch.equal, weights(online), weights(own))),
                "steps": ours.step,
                "accuracy": [accuracy, right / total],
                "last loss": [loss, report.loss],
                "momentum": ours.optimizer.param_groups[0]["momentum"],
            }
        )
    )


if __name__ == "__main__":
    main()
