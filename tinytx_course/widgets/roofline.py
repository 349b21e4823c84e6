"""The roofline explorer: is a kernel limited by memory or by compute, and where does a matrix product lie?"""

from __future__ import annotations

import math
from collections.abc import Mapping

import traitlets

from tinytx_course.widgets.base import Explorer, bounded

_LARGEST = 65_536


class RooflineExplorer(Explorer):
    """See `roofline`; a kernel is [name, FLOPs, bytes, seconds]; `compute` and `memory` are factors."""

    kind = "roofline"
    title = traitlets.Unicode("Roofline explorer").tag(sync=True)

    flops = traitlets.Float().tag(sync=True)
    bytes_per_second = traitlets.Float().tag(sync=True)
    kernels = traitlets.List(traitlets.List()).tag(sync=True)
    batch_size = bounded(32, 1, _LARGEST)
    width = bounded(512, 1, _LARGEST)
    kernel = bounded(0, 0, lambda its: max(0, len(its.kernels) - 1))
    compute = traitlets.Enum((1, 2, 4), 1).tag(sync=True)
    memory = traitlets.Enum((1, 2, 4), 1).tag(sync=True)

    def summary(self) -> str:
        """Return what is shown, and the roof."""
        return (
            "FLOP/s against FLOPs per byte, both logarithmic: the roof of a machine, measured kernels, and a "
            f"matrix product. At most {self.flops / 1e9:,.4g} GFLOP/s and {self.bytes_per_second / 1e9:,.4g} "
            f"GB/s; {len(self.kernels)} kernels; {self.batch_size} rows times a matrix {self.width} wide."
        )


def roofline(
    flops: float,
    bytes_per_second: float,
    kernels: Mapping[str, tuple[float, float, float]] | None = None,
) -> RooflineExplorer:
    """Place kernels, and a matrix product of any size, under the roof of a machine.

    The product multiplies `batch_size` rows by a square matrix, in float32; each number is read or written
    once. It lies on the roof: the best that the machine can reach.

    Parameters
    ----------
    flops : float
        The most operations per second; a multiply-add counts as two.
    bytes_per_second : float
        The most bytes per second that memory reads and writes.
    kernels : mapping of str to (float, float, float), optional
        Measured kernels by name: FLOPs, bytes moved, seconds.

    Raises
    ------
    ValueError
        If a number is not positive and finite.

    References
    ----------
    .. [1] Williams, Waterman and Patterson, "Roofline", Communications of the ACM 52(4), 2009.

    Examples
    --------
    >>> roofline(1e11, 1e10, {"sum": (1e6, 12e6, 0.002)}).kernels
    [['sum', 1000000.0, 12000000.0, 0.002]]
    """
    rows = {name: list(map(float, row)) for name, row in (kernels or {}).items()}
    for name, row in {"the roof": [flops, bytes_per_second], **rows}.items():
        if not all(0 < number < math.inf for number in row):
            raise ValueError(f"numbers must be positive and finite, got {row} of {name}")
    return RooflineExplorer(
        flops=float(flops),
        bytes_per_second=float(bytes_per_second),
        kernels=[[name, *row] for name, row in rows.items()],
    )
