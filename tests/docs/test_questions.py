"""What a newcomer asks: where it is answered, in how many clicks and words.

A click follows a link, from the README on. Words are counted from the heading that the last link
leads to (the top of the page without one) to the end of the answer; code counts, and so do tables.
`python -m tests.docs.test_questions` prints the table.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]


class Question(NamedTuple):
    """What is asked, the links to follow, where the reader starts, and the answer's last words."""

    text: str
    links: tuple[str, ...]
    heading: str
    answer: str


LIST = "docs/README.md"
QUESTIONS = (
    Question("How do I install it?", (), "Install", "pip install ./recollect"),
    Question("How do I train on my own stream?", (), "Use", "learner.observe(images, labels)"),
    Question(
        "Which method should I use?", (), "Which method should I use?", "times the computing time."
    ),
    Question("What of the paper holds?", (), "What of the paper holds?", "and helps on CIFAR10-S"),
    Question(
        "How do I resume after a crash?",
        (LIST, "live-streams.md#after-a-crash"),
        "After a crash",
        'resumed.load("learner.ckpt")',
    ),
    Question(
        "Which method under BatchNorm?",
        (),
        "Which method should I use?",
        "**With BatchNorm: `er`.**",
    ),
    Question(
        "Why is BatchNorm special?",
        ("docs/batch-norm.md",),
        "Replay on a network with BatchNorm",
        "depend on the other examples of the batch",
    ),
    Question(
        "What does forgetting mean here?",
        (LIST, "reproduction.md#words"),
        "Words",
        "below its best earlier accuracy",
    ),
    Question(
        "How do I add a loss?",
        (LIST, "methods.md#a-loss-of-your-own"),
        "A loss of your own",
        "loss=squared_error",
    ),
    Question(
        "How do I add a storage, a retrieval or a rule?",
        (LIST, "methods.md#a-part-of-your-own"),
        "A part of your own",
        "compares it with the others",
    ),
    Question("How fast is it?", (), "Other libraries", "| time of ER, ResNet | 1 |"),
    Question(
        "Does it run on a GPU?", (LIST, "live-streams.md#on-a-gpu"), "On a GPU", "memory_device"
    ),
    Question(
        "How do I use my own data?",
        (LIST, "data.md#your-own-data"),
        "Your own data",
        "from_arrays(inputs, labels)",
    ),
    Question(
        "How do I learn from texts, and new classes?",
        (LIST, "live-streams.md#a-stream-of-texts"),
        "A stream of texts",
        "learner = build()",
    ),
    Question(
        "How do I delete an example?",
        (LIST, "live-streams.md#a-deletion"),
        "A deletion",
        "memory.forget(ids=[some])",
    ),
    Question(
        "May other threads predict meanwhile?",
        (LIST, "live-streams.md#answering-meanwhile"),
        "Answering meanwhile",
        "without a lock of yours",
    ),
    Question(
        "How many seeds do I need?",
        (LIST, "appendix/seeds.md"),
        "How many seeds it takes",
        "three to four on CIFAR10-S",
    ),
    Question(
        "How do I run a number of the paper again?",
        (LIST, "reproduction.md#run-a-cell-again"),
        "Run a cell again",
        "recollect run mnist-split --method er-p",
    ),
)


def page_of(question: Question) -> Path:
    """Follow the links.

    Raises:
        AssertionError: A page has no such link.
    """
    page = ROOT / "README.md"
    for link in question.links:
        assert f"]({link})" in page.read_text(), f"{page.name} does not link to {link}"
        page = page.parent / link.partition("#")[0]
    return page


def words_until_answered(question: Question) -> int:
    """Count words from the heading to the end of the answer."""
    text = page_of(question).read_text()
    start = re.search(rf"^#+ {re.escape(question.heading)}$", text, flags=re.MULTILINE)
    assert start, f"no heading {question.heading!r}"
    before, found, _ = text[start.end() :].partition(question.answer)
    assert found, f"no answer {question.answer!r}"
    return len((before + found).split())


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_a_question_is_answered_within_two_clicks_and_200_words(question: Question) -> None:
    assert len(question.links) <= 2
    assert words_until_answered(question) <= 200


if __name__ == "__main__":
    rows = ["| question | page | clicks | words |", "|---|---|---|---|"]
    for asked in QUESTIONS:
        where, words = page_of(asked).relative_to(ROOT), words_until_answered(asked)
        rows.append(f"| {asked.text} | {where} | {len(asked.links)} | {words} |")
    sys.stdout.write("\n".join([*rows, ""]))
