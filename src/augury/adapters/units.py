"""Which families depend on the units of series and sound, and what exported code says of it.

augury subtracts each channel's mean and divides by its standard deviation before it augments, as
`Preparation` does; exported code is given whatever its user has.
"""

from __future__ import annotations

from augury import augmentations as ours
from augury._base.text import listed
from augury.adapters.walk import leaves

OF_SCALE = frozenset({ours.jitter, ours.drift})
"""Families that add values of a given size: T(a x) is not a T(x)."""

OF_OFFSET = frozenset(
    {
        ours.scaling,
        ours.magnitude_warp,
        ours.sign_flip,
        ours.time_mask,
        ours.feature_dropout,
        ours.channel_dropout,
        ours.frequency_mask,
    }
)
"""Families of series that multiply values or set them to zero: T(x + b) is not T(x) + b.

Those of sound alone are left out, since recordings have a mean near zero.
"""


def expected_units(augmentation: ours.Augmentation) -> str:
    """Return a line about the parts that expect standardised values; empty if none does."""
    families = OF_SCALE | OF_OFFSET if "series" in augmentation.kinds else OF_SCALE
    names = dict.fromkeys(repr(a) for a in leaves(augmentation) if type(a) in families)
    if not names:
        return ""
    expect = "expects" if len(names) == 1 else "expect"
    return (
        f"\n{listed(names)} {expect} examples that are standardised as augury does: subtract each "
        "channel's mean in the training data, then divide by its standard deviation "
        "(preparation.mean and .deviation of augury.load(...))."
    )
