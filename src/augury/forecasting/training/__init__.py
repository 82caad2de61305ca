"""Small networks, trained many at once."""

from augury.forecasting.training.train import Tested, train_together

__all__ = ["Tested", "train_together"]
