"""The numbers among estimators' parameters, checked before anything is computed."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from augury._base.errors import AuguryError

_WHOLE = {"features": (2, 2**40), "versions": (1, 4096), "seed": (0, 2**63 - 1)}
_POSITIVE = {"ridge": "'gcv'", "gamma": "the name of a rule", "memory": "None"}
_RANGE = (1e-30, 1e30)  # what float32 can take with room to spare


def check_numbers(estimator: Any) -> None:
    """Raise one clear line if a parameter is no number, or out of range."""
    given = estimator.get_params(deep=False)
    for name, (least, most) in _WHOLE.items():
        value = given[name]
        if not isinstance(value, Integral) or not least <= int(value) <= most:
            raise AuguryError(
                f"{name} must be a whole number from {least} to {most:,}, not {value!r}"
            )
    for name, other in _POSITIVE.items():
        value = given.get(name)
        if name not in given or (value is None if name == "memory" else isinstance(value, str)):
            continue
        if not isinstance(value, Real) or not _RANGE[0] <= float(value) <= _RANGE[1]:
            raise AuguryError(
                f"{name} must be a number from 1e-30 to 1e30, or {other}; not {value!r}"
            )
