"""Other libraries' augmentations in, pipelines for other libraries out."""

from augury.adapters.export import FORMATS, export

__all__ = ["FORMATS", "export"]
