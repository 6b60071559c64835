"""Learn from text that comes once: sentences go in, names of languages come out.

The memory keeps strings of any length; what the model reads is made of them when they are needed.

Run it: python examples/text.py
"""

from collections.abc import Iterator

import torch
from torch import Tensor

import recollect
from recollect.datasets import Examples, load
from recollect.models import SequenceTransformer

LANGUAGES = ("English", "Finnish", "Hungarian", "Italian")
LONGEST = 32


def words(sentences: list[str]) -> Tensor:
    """Turn each sentence into its bytes, padded with zeros: a tokenizer of your own goes here."""
    rows = [list(sentence.encode()[:LONGEST]) for sentence in sentences]
    return torch.tensor([row + [0] * (LONGEST - len(row)) for row in rows])


def sentences_of(part: Examples, names: tuple[str, ...]) -> dict[str, list[str]]:
    """Return snippets of the declaration of human rights by language, some cut short."""
    found: dict[str, list[str]] = {name: [] for name in LANGUAGES}
    for number, (row, label) in enumerate(zip(part.inputs, part.labels.tolist(), strict=True)):
        if names[label] in found:
            text = bytes(row[: LONGEST - number % 8].tolist()).decode(errors="ignore")
            found[names[label]].append(text)
    return found


def stream(sentences: dict[str, list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield batches of two languages, then of the next two: each sentence once."""
    rng = torch.Generator().manual_seed(0)
    for first in range(0, len(LANGUAGES), 2):
        pairs = [(text, name) for name in LANGUAGES[first : first + 2] for text in sentences[name]]
        order = torch.randperm(len(pairs), generator=rng).tolist()
        for start in range(0, len(order), 10):
            chosen = [pairs[position] for position in order[start : start + 10]]
            yield [text for text, _ in chosen], [name for _, name in chosen]


def learn(name: str) -> dict[str, float]:
    """Return the share of test sentences that is recognised, by language."""
    data = load("languages")
    torch.manual_seed(0)
    model = SequenceTransformer(num_classes=len(LANGUAGES), length=LONGEST, width=32, layers=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    classes = recollect.LabelMap()
    learner = recollect.method(
        name, model, optimizer, capacity=200, transform=words, label_map=classes, seed=0
    )
    for sentences, languages in stream(sentences_of(data.train, data.class_names)):
        learner.observe(sentences, languages)
    found = {}
    for language, sentences in sentences_of(data.test, data.class_names).items():
        answers = classes.decode(learner.predict(sentences))
        found[language] = answers.count(language) / len(answers)
    return found


def main() -> None:
    print("      ", *(f"{language:>9}" for language in LANGUAGES))
    for name in ("van", "er"):
        shares = learn(name)
        mean = sum(shares.values()) / len(shares)
        print(f"{name:6}", *(f"{share:9.0%}" for share in shares.values()), f"  mean {mean:.0%}")


if __name__ == "__main__":
    main()
