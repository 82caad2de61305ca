"""What training minimises: f, g, ĝ, g̃ of the paper, over an orbit, for any head and loss."""

from augury.objectives.bounds import Certificate, certify
from augury.objectives.losses import (
    Loss,
    any_loss,
    logistic,
    multinomial,
    quadratic,
)
from augury.objectives.objectives import (
    Objective,
    exact,
    first_order,
    original,
    second_order,
    second_order_only,
    variance_term,
)

__all__ = [
    "Certificate",
    "Loss",
    "Objective",
    "any_loss",
    "certify",
    "exact",
    "first_order",
    "logistic",
    "multinomial",
    "original",
    "quadratic",
    "second_order",
    "second_order_only",
    "variance_term",
]
