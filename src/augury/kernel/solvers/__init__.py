"""From features and targets to weights: closed forms, quasi-Newton and stochastic gradients."""

from augury._base.memory import available_bytes, check_fits
from augury.kernel.solvers.batches import Batches
from augury.kernel.solvers.descent import descend
from augury.kernel.solvers.newton import minimise
from augury.kernel.solvers.ridge import RidgeSolution, RoughProducts, solve_ridge

__all__ = [
    "Batches",
    "RidgeSolution",
    "RoughProducts",
    "available_bytes",
    "check_fits",
    "descend",
    "minimise",
    "solve_ridge",
]
