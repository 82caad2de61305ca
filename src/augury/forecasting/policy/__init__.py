"""Policies: augmentations chosen for a planned training, and the search that chooses them."""

from augury.forecasting.policy.policy import Policy, PolicyRow
from augury.forecasting.policy.search import search_policy

__all__ = ["Policy", "PolicyRow", "search_policy"]
