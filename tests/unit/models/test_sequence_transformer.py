import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from recollect.models import SequenceTransformer, seeded


def small(**options: int) -> SequenceTransformer:
    made = seeded(lambda: SequenceTransformer(20, 3, length=8, width=8, heads=2, **options), 0)
    assert isinstance(made, SequenceTransformer)
    return made


@pytest.mark.parametrize("trains", [False, True])
def test_a_padded_sequence_is_answered_as_if_it_came_alone(trains: bool) -> None:
    model = seeded(lambda: SequenceTransformer(20, 3, length=8, width=8, dropout=0.0), 0).double()
    model.train(trains)
    rng = torch.Generator().manual_seed(0)
    sequences = [torch.randint(1, 20, (size,), generator=rng) for size in (8, 3, 1, 5)]
    together = model(pad_sequence(sequences, batch_first=True))
    alone = torch.cat([model(sequence[None]) for sequence in sequences])
    torch.testing.assert_close(together, alone)


def test_the_order_of_words_matters() -> None:
    model = small().eval()
    words = torch.tensor([[1, 2, 3], [3, 2, 1]])
    first, second = model(words)
    assert not torch.allclose(first, second)


def test_bytes_are_taken_as_they_are_stored() -> None:
    model = small().eval()
    words = torch.tensor([[1, 2, 3, 0]])
    assert torch.equal(model(words.byte()), model(words))


def test_padding_alone_has_an_answer() -> None:
    assert bool(torch.isfinite(small()(torch.zeros(2, 4))).all())


def test_what_does_not_fit_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"`width` is 8, which 3 `heads` cannot share"):
        SequenceTransformer(20, 3, width=8, heads=3)
    with pytest.raises(ValueError, match=r"given shape \(1, 9\); pass .* of at most 8 words"):
        small()(torch.ones(1, 9))
    with pytest.raises(ValueError, match=r"given shape \(1, 2, 2\)"):
        small()(torch.ones(1, 2, 2))
