"""Sphinx settings. Figures that derive from committed results are drawn before each build."""

import sys
from pathlib import Path

project = "augury"
author = "the augury developers"
copyright = "2026, the augury developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # tour.ipynb is committed with its output; a test runs it
html_theme = "furo"
html_title = "augury"
exclude_patterns = ["jupyter_execute", "_build"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True


def setup(app):
    app.connect("builder-inited", draw_figures)


def draw_figures(app):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
    import pages

    pages.draw()
