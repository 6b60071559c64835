"""A small transformer for sequences of whole numbers, such as bytes of text."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn


@final
class SequenceTransformer(nn.Module):
    """Tell the class of a sequence: words and positions are looked up, attended to and averaged.

    Word 0 is padding: nothing attends to it, and it is left out of the mean. So sequences of
    differing length, which a learner pads with zeros, are answered as if each came alone.

    Args:
        num_words: Words are numbered from 0 to one below this.
        num_classes: Outputs.
        length: Longest sequence.
        width: Numbers per word, a multiple of `heads`.
        layers: Blocks of attention.
        heads: Heads of attention.
        dropout: Share of numbers that are left out while it trains.

    Example:
        >>> model = SequenceTransformer(num_words=256, num_classes=3, length=8)
        >>> model(torch.tensor([[72, 105, 0], [72, 111, 33]])).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        num_words: int = 256,
        num_classes: int = 10,
        *,
        length: int = 64,
        width: int = 64,
        layers: int = 2,
        heads: int = 4,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(
                f"`width` is {width}, which {heads} `heads` cannot share; make it a multiple."
            )
        self.words = nn.Embedding(num_words, width, padding_idx=0)
        self.positions = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=dropout, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.head = nn.Linear(width, num_classes)

    def forward(self, words: Tensor) -> Float[Tensor, "examples classes"]:
        """Return logits of sequences of any whole numbers, one per row."""
        if words.ndim != 2 or words.shape[1] > self.positions.num_embeddings:
            raise ValueError(
                f"the model was given shape {tuple(words.shape)}; pass (examples, words) of at "
                f"most {self.positions.num_embeddings} words, or build it with another `length`."
            )
        words = words.long()
        is_padding = words == 0
        # A sequence of padding alone would attend to nothing, and answer NaN.
        ignored = is_padding & ~is_padding.all(1, keepdim=True)
        places = torch.arange(words.shape[1], device=words.device)
        hidden = self.words(words) + self.positions(places)
        hidden = self.encoder(hidden, src_key_padding_mask=ignored)
        kept = (~ignored).unsqueeze(2)
        return self.head((hidden * kept).sum(1) / kept.sum(1))
