"""Text from a generated language, and a character-level transformer that learns it."""

import torch
from torch import nn

#: Characters: a space and eleven letters.
CHARACTERS = 12
LENGTH = 16


def _language(generator, words=40, most=5):
    """Words of letters 1 to 11, and for each word the three that may follow it."""
    lengths = torch.randint(2, most + 1, (words,), generator=generator).tolist()
    return ([torch.randint(1, CHARACTERS, (length,), generator=generator).tolist() for length in lengths],
            torch.randint(words, (words, 3), generator=generator).tolist())


def text(characters: int, seed: int = 0) -> torch.Tensor:
    """Numbers 0 to 11: words with a space (0) after each, every word one of three that may follow the last."""
    generator = torch.Generator().manual_seed(seed)
    words, following = _language(generator)
    steps = torch.randint(3, (characters,), generator=generator).tolist()
    found: list[int] = []
    word = 0
    for step in steps:
        found += [*words[word], 0]
        word = following[word][step]
        if len(found) >= characters:
            break
    return torch.tensor(found[:characters])


def load(train: int = 2048, test: int = 512) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training inputs and targets, test inputs and targets: (N, LENGTH) characters and those that follow each."""
    pieces = text((train + test) * LENGTH + 1)
    x, y = pieces[:-1].view(-1, LENGTH), pieces[1:].view(-1, LENGTH)
    return x[:train], y[:train], x[train:], y[train:]


class CharacterTransformer(nn.Module):
    """Encoder layers under a causal mask: (N, L) characters -> (N, CHARACTERS, L) logits of the next.

    The first layer multiplies one-hot characters, so that first and last layer are a hundredth of the arithmetic.

    Parameters
    ----------
    layers, width, heads : int
        Size.
    """

    def __init__(self, layers: int = 6, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(CHARACTERS, width, bias=False)
        self.place = nn.Embedding(LENGTH, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0, batch_first=True,
                                                               norm_first=True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CHARACTERS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, L) -> (N, CHARACTERS, L)."""
        length = x.shape[1]
        y = self.embed(nn.functional.one_hot(x, CHARACTERS).float())
        y = y + self.place(torch.arange(length, device=x.device).expand(len(x), length))
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=x.device)
        for layer in self.layers:
            y = layer(y, src_mask=mask, is_causal=True)
        return self.head(self.norm(y)).transpose(1, 2)
