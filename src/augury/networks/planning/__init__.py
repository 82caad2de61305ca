"""Where in a network to average."""

from augury.networks.planning.planner import plan
from augury.results.averaging_plan import Choice, Place, Plan

__all__ = ["Choice", "Place", "Plan", "plan"]
