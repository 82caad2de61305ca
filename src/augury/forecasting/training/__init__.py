"""Small networks, trained many at once, to learn what augmentations really do."""

from augury.forecasting.training.grouped import ARCHITECTURES, Grouped
from augury.forecasting.training.train import Curve, train_together

__all__ = ["ARCHITECTURES", "Curve", "Grouped", "train_together"]
