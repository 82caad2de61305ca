"""Other libraries' augmentations in, pipelines for other libraries out."""

from augury.adapters.export import FORMATS, export
from augury.adapters.foreign import from_foreign
from augury.adapters.pipeline import take_apart

__all__ = ["FORMATS", "export", "from_foreign", "take_apart"]
