"""Where in a network to average, and what it costs."""

from augury.networks.planning.planner import plan_averaging

__all__ = ["plan_averaging"]
