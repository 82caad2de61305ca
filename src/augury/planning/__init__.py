"""Where in a network to average."""

from augury.planning.planner import plan
from augury.planning.result import Choice, Place, Plan

__all__ = ["Choice", "Place", "Plan", "plan"]
