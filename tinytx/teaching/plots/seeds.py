"""Several runs that differ only by their seed, as one curve with a band."""

from collections.abc import Sequence

from tinytx.teaching.plots.lines import Curve
from tinytx.teaching.plots.style import numbers_of


def seed_band(label: str, runs, *, every: int = 1, color: str | None = None, dashed: bool = False) -> Curve:
    """Return the mean of runs as a curve, with a band from the lowest to the highest of them.

    Parameters
    ----------
    label : str
        Written beside the end of the line.
    runs : Tensor, array or nested lists of shape (n_seeds, n_steps)
        One row a seed, such as the loss of each step, from step 1.
    every : int
        First take the mean over windows of so many steps; what is left over at the end is not shown.
    color, dashed
        As in `Curve`.

    Returns
    -------
    Curve
        Each point stands at the last step of its window.

    Raises
    ------
    ValueError
        If there are not two axes, or fewer steps than a window holds.
    """
    values = numbers_of(runs)
    if values.ndim != 2 or values.shape[1] < every:
        raise ValueError(f"runs must have shape (n_seeds, n_steps >= {every}), got {values.shape}")
    n_windows = values.shape[1] // every
    windows = values[:, : n_windows * every].reshape(len(values), n_windows, every).mean(axis=2)
    steps: Sequence[float] = range(every, n_windows * every + 1, every)
    return Curve(
        label, steps, windows.mean(axis=0), windows.min(axis=0), windows.max(axis=0),
        color=color, dashed=dashed,
    )  # fmt: skip
