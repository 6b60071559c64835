"""What ER-P costs beside ER on the kinds of models people have.

Ten incoming and ten replayed examples, one thread. Steps of ER and of ER-P are alternated in one
process, and medians compared, so that other processes slow both. Peak memory is measured in a
process of its own for each method.

    python -m perf.models [--repetitions N] [--model NAME ...] [--profile NAME]
"""

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor, nn

from perf.asking.answer import Answer, ratio_of
from perf.asking.measuring import one_thread, tell
from recollect import Learner, method
from recollect.models import mlp, reduced_resnet18

Made = tuple[nn.Module, Callable[[], Tensor], int]
TOKENS, WIDTH, WORDS, BATCH = 64, 128, 1000, 10


class Encoder(nn.Module):
    """`nn.TransformerEncoder` over 64 tokens, with dropout and a padding mask."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.positions = nn.Embedding(TOKENS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.table(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.head(self.encoder(hidden, src_key_padding_mask=tokens == 0).mean(1))


class Recurrent(nn.Module):
    """A recurrent network over 64 steps."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.cell, self.head = kind(WIDTH // 2, WIDTH, batch_first=True), nn.Linear(WIDTH, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0][:, -1])


class HuggingFace(nn.Module):
    """DistilBERT of the encoder's size, whole or with adapters."""

    def __init__(self, *, adapters: bool) -> None:
        super().__init__()
        from transformers import DistilBertConfig, DistilBertForSequenceClassification

        config = DistilBertConfig(  # type: ignore[call-arg]
            vocab_size=WORDS, max_position_embeddings=TOKENS, n_layers=2, n_heads=4, dim=WIDTH,
            hidden_dim=4 * WIDTH, pad_token_id=0, num_labels=10,
        )  # fmt: skip
        self.model: nn.Module = DistilBertForSequenceClassification(config)
        if adapters:
            from peft import LoraConfig, get_peft_model

            self.model = get_peft_model(
                self.model, LoraConfig(r=8, target_modules=["q_lin", "v_lin"], lora_dropout=0.1)
            )

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model(input_ids=tokens, attention_mask=(tokens != 0).long()).logits


def _tokens() -> Tensor:
    tokens = torch.randint(1, WORDS, (BATCH, TOKENS))
    lengths = torch.randint(TOKENS // 2, TOKENS + 1, (BATCH, 1))
    return tokens.masked_fill(torch.arange(TOKENS) >= lengths, 0)


def _sequences() -> Tensor:
    return torch.randn(BATCH, TOKENS, WIDTH // 2)


def _images() -> Tensor:
    return torch.randn(BATCH, 3, 32, 32)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor], float | None]] = {
    "transformer encoder": (Encoder, _tokens, 1.6),
    "distilbert": (lambda: HuggingFace(adapters=False), _tokens, 2.0),
    "lora on distilbert": (lambda: HuggingFace(adapters=True), _tokens, 1.3),
    "lstm": (lambda: Recurrent(nn.LSTM), _sequences, 2.5),
    "gru": (lambda: Recurrent(nn.GRU), _sequences, None),
    "mlp": (lambda: mlp(784, 10), lambda: torch.randn(BATCH, 784), 1.35),
    "mlp in a subclass": (lambda: _Wrapped(mlp(784, 10)), lambda: torch.randn(BATCH, 784), None),
    "reduced resnet18": (lambda: reduced_resnet18(), _images, 1.9),
    "reduced resnet18, group norm": (lambda: reduced_resnet18(norm="group"), _images, None),
}


class _Wrapped(nn.Module):
    """Any model, not recognised as a chain of layers."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)


def learner_of(name: str, rule: str) -> tuple[Learner, Callable[[], Tensor]]:
    make, data, _ = MODELS[name]
    torch.manual_seed(0)
    model = make()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    sgd = torch.optim.SGD(trained, lr=0.01)
    return method(rule, model, sgd, capacity=100, replay=10, seed=0), data


def step(learner: Learner, inputs: Tensor, labels: Tensor) -> float:
    start = time.process_time()
    learner.observe(inputs, labels)
    return time.process_time() - start


def timed(name: str, repetitions: int) -> tuple[list[float], list[float]]:
    """Return the CPU times of alternated steps of ER and of ER-P."""
    learners = [learner_of(name, rule)[0] for rule in ("er", "er-p")]
    data = MODELS[name][1]
    took: tuple[list[float], list[float]] = ([], [])
    for repetition in range(repetitions + 4):
        inputs, labels = data(), torch.randint(10, (BATCH,))
        for learner, times in zip(learners, took, strict=True):
            seconds = step(learner, inputs, labels)
            if repetition >= 4:
                times.append(seconds)
    return took


def compare(name: str, repetitions: int) -> None:
    took = timed(name, repetitions)
    er, er_p = (median(times) for times in took)
    ratios = sorted(b / a for a, b in zip(*took, strict=True))
    aim = MODELS[name][2]
    peaks = [peak(name, rule) for rule in ("er", "er-p")]
    print(
        f"{name:30} {1e3 * er:8.2f} {1e3 * er_p:8.2f} {er_p / er:6.2f} "
        f"[{ratios[len(ratios) // 4]:.2f}, {ratios[3 * len(ratios) // 4]:.2f}] "
        f"{'' if aim is None else aim:>5}   {peaks[0]:5.0f} {peaks[1]:5.0f}",
        flush=True,
    )


def measure(*, repetitions: int = 20) -> Answer:
    """Time ER and ER-P on every kind of model."""
    warnings.simplefilter("ignore")
    one_thread()
    times: dict[str, list[float]] = {}
    ratios = []
    for name, title in _ON_THE_PAGE.items():
        tell(f"models: {title}")
        er, er_p = timed(name, repetitions)
        times |= {f"ER, {title}": er, f"ER-P, {title}": er_p}
        each = [b / a for a, b in zip(er, er_p, strict=True)]
        ratios.append(ratio_of("ER-P on it", "ER on it", title, each))
    tell("")
    return Answer(
        title="Kinds of models",
        command="python -m perf.models",
        settings={"batch": BATCH, "replayed": 10, "repetitions": repetitions},
        unit="s of CPU a step",
        times=times,
        ratios=ratios,
    )


_ON_THE_PAGE = {
    "transformer encoder": "transformer encoder, 64 tokens",
    "distilbert": "DistilBERT",
    "lora on distilbert": "LoRA on DistilBERT",
    "lstm": "LSTM",
    "gru": "GRU",
    "reduced resnet18, group norm": "ResNet 32, GroupNorm",
}


def peak(name: str, rule: str) -> float:
    """Largest resident size of a process that takes some steps, in MB."""
    command = [sys.executable, "-m", "perf.models", "--peak", name, rule]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return float(ended.stdout)


def print_peak(name: str, rule: str) -> None:
    learner, data = learner_of(name, rule)
    for _ in range(6):
        learner.observe(data(), torch.randint(10, (BATCH,)))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def profile(name: str) -> None:
    from torch.profiler import profile as profiler

    learner, data = learner_of(name, "er-p")
    for _ in range(4):
        learner.observe(data(), torch.randint(10, (BATCH,)))
    with profiler() as found:
        for _ in range(10):
            learner.observe(data(), torch.randint(10, (BATCH,)))
    print(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=20))


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--model", action="append")
    parser.add_argument("--peak", nargs=2)
    parser.add_argument("--profile")
    asked = parser.parse_args()
    if asked.peak:
        print_peak(*asked.peak)
    elif asked.profile:
        profile(asked.profile)
    else:
        print(f"{'':30} {'ER ms':>8} {'ER-P ms':>8} {'ratio':>6} [quartiles]    aim   MB: ER, ER-P")
        for name in asked.model or MODELS:
            compare(name, asked.repetitions)


if __name__ == "__main__":
    main()
