"""How far the choice of a policy can be relied on."""

from __future__ import annotations

_BETTER = "{:.1f} points more than TrivialAugment and {:.1f} more than RandAugment"
_CLOSE = "no recipe, nor training without augmentation, was better by more than {} points"

MEASURED = (
    "Policies found on a GPU were trained with on ten combinations of a data set and a network. On "
    f"average, they gained {_BETTER.format(1.9, 1.0)}; {_CLOSE.format(0.3)}."
)
SMALL = (
    "This search tried a small network instead of the planned one, as on every CPU. Policies found "
    "in this way were trained with on five data sets. On average, they gained "
    f"{_BETTER.format(2.0, 1.3)}; {_CLOSE.format(0.3)} on four of them, and RandAugment by "
    "0.6 ± 0.9 points (± is the standard error) on the fifth."
)
OWN = (
    "Searches with a user's own network were measured only for fine-tuning one network on two data "
    f"sets. On average, the policies gained {_BETTER.format(0.6, 0.6)}."
)


_CUT = " This search did less work than those, to keep to its budget."


def trust(small: bool, own: bool, cut: bool = False) -> str:
    """Return what is known of such searches.

    Parameters
    ----------
    small
        Whether a small network was tried in place of the planned one.
    own
        Whether the network is the user's own.
    cut
        Whether the search was cut to a budget.
    """
    return (OWN if own else SMALL if small else MEASURED) + (_CUT if cut else "")
