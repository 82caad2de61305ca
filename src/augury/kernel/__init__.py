"""The scikit-learn side: kernel classifiers and regressors trained with augmentation."""

from augury.kernel.classifier import AugmentedKernelClassifier
from augury.kernel.persistence import about_model, load_model, save_model
from augury.kernel.regressor import AugmentedKernelRegressor
from augury.kernel.transformer import AugmentedFourierFeatures

__all__ = [
    "AugmentedFourierFeatures",
    "AugmentedKernelClassifier",
    "AugmentedKernelRegressor",
    "about_model",
    "load_model",
    "save_model",
]
