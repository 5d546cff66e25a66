"""Data to learn from, without any download."""

import torch

TASKS = ("digits", "teacher")


def load(name: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training inputs, training classes, test inputs and test classes of a task: float32 (N, features), int64 (N,).

    Parameters
    ----------
    name : str
        ``digits``: the 8 x 8 images of scikit-learn, (N, 64), 1437 to train and 360 to test; it does not tell formats
        of more than 3 bits apart. ``teacher``: the decisions of a fixed random network, (N, 16), which a network
        16-128-128-10 learns in part only; HBFP4 stays several points below FP32.

    Raises
    ------
    ValueError
        If the task is unknown.
    """
    match name:
        case "digits":
            return _digits()
        case "teacher":
            return _teacher()
    raise ValueError(f"Task must be one of {', '.join(TASKS)}, not {name!r}")


def _digits():
    from sklearn.datasets import load_digits
    data = load_digits()
    x, y = torch.tensor(data.data, dtype=torch.float32) / 16, torch.tensor(data.target)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x, y = x[order], y[order]
    return x[:-360], y[:-360], x[-360:], y[-360:]


def _teacher(inputs=16, hidden=64, classes=10, train=8000, test=4000):
    """Classes from tanh layers whose gains make the borders fine."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=generator)
    x = normal(train + test, inputs)
    w1, w2, w3 = normal(inputs, hidden) / inputs ** 0.5 * 2, normal(hidden, hidden) / hidden ** 0.5 * 1.5, \
        normal(hidden, classes)
    y = torch.tanh(torch.tanh(x @ w1) @ w2) @ w3
    y = ((y - y.mean(0)) / y.std(0)).argmax(1)
    return x[:train], y[:train], x[train:], y[train:]


def network(task: str) -> torch.nn.Module:
    """The network for a task; torch's global seed decides its start."""
    sizes = {"digits": (64, 128, 64, 10), "teacher": (16, 128, 128, 10)}[task]
    layers = []
    for a, b in zip(sizes, sizes[1:], strict=False):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])
