"""From features and targets to weights: closed forms, quasi-Newton and stochastic gradients."""

from augury.solvers.batches import Batches
from augury.solvers.descent import descend
from augury.solvers.memory import available_bytes, check_fits
from augury.solvers.newton import minimise
from augury.solvers.ridge import Ridge, RoughProducts, solve_ridge

__all__ = [
    "Batches",
    "Ridge",
    "RoughProducts",
    "available_bytes",
    "check_fits",
    "descend",
    "minimise",
    "solve_ridge",
]
