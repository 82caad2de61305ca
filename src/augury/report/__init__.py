"""Results as pages, Markdown and figures: this layer renders, it never computes a score."""

from augury.report.markdown import to_markdown
from augury.report.ranking import to_fragment, to_html

__all__ = ["to_fragment", "to_html", "to_markdown"]
