"""The scikit-learn side: kernel classifiers and regressors trained with augmentation."""

from augury.estimators.classifier import AugmentedKernelClassifier
from augury.estimators.persistence import about_model, load_model, save_model
from augury.estimators.regressor import AugmentedKernelRegressor
from augury.estimators.transformer import AugmentedFourierFeatures

__all__ = [
    "AugmentedFourierFeatures",
    "AugmentedKernelClassifier",
    "AugmentedKernelRegressor",
    "about_model",
    "load_model",
    "save_model",
]
