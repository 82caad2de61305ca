"""The page of a certificate: how far training on averaged features can lead from the truth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from augury.report.markdown import document, escape, facts_table
from augury.report.page import render_page

if TYPE_CHECKING:
    from augury.objectives.bounds import Certificate

_TITLE = "Guarantee for averaged features"
_WORDS = {
    "a": "Smallest eigenvalue of the mean covariance of views",
    "b": "Largest eigenvalue of the mean covariance of views",
    "c": "Smallest eigenvalue of the second moment of averaged features",
    "alpha": "Strong convexity of the loss",
    "beta": "Smoothness of the loss",
    "ridge": "Ridge penalty λ",
    "distance": "Bound on the squared distance of the weights, over their squared norm",
}


def to_html(certificate: Certificate) -> str:
    """Write a certificate as one self-contained page."""
    return render_page(
        "certificate.html",
        certificate.to_json(),
        title=_TITLE,
        file_name="certificate.json",
        lead=certificate.sentence,
        facts=facts(certificate),
    )


def to_markdown(certificate: Certificate) -> str:
    """Write a certificate as Markdown."""
    lead = f"**{escape(certificate.sentence)}**"
    return document([f"# {_TITLE}", lead, facts_table(facts(certificate))])


def facts(certificate: Certificate) -> list[tuple[str, str]]:
    """Return each number of a certificate with its meaning."""
    return [(words, say(getattr(certificate, name))) for name, words in _WORDS.items()]


def say(value: float) -> str:
    """Write a number with three digits; "unbounded" for infinity."""
    return "unbounded" if math.isinf(value) else f"{value:.3g}"


def certificate_figure(certificate: Certificate) -> Figure:
    """Draw the bound on the distance of the weights and the ranges that count as near and fair."""
    figure = Figure(figsize=(6.5, 1.6), layout="constrained")
    axes = figure.subplots()
    bound = math.sqrt(certificate.distance)
    reach = min(max(1.0, 1.2 * bound), 3.0)
    axes.axvspan(0, 0.1, color="#1261a6", alpha=0.25, label="can be trusted")
    axes.axvspan(0.1, 0.5, color="#1261a6", alpha=0.1, label="a fair guide")
    axes.barh([0], [min(bound, reach)], height=0.4, color="#6b7480", label="bound")
    axes.set(xlim=(0, reach), yticks=[], xlabel="distance of the weights, relative to their norm")
    axes.legend(loc="upper right", fontsize="small", frameon=False)
    return figure
