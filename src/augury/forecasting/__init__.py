"""Forecasts: what an augmentation will do for a planned training."""

from augury.forecasting.rank import rank

__all__ = ["rank"]
