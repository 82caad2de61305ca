"""Where this implementation differs from the paper, or from its authors' code, on purpose."""

from __future__ import annotations

from augury_paper.section import Difference

ERRATA = (
    Difference(
        1,
        "approximation",
        "The logistic second-order term",
        "The appendix prints the coefficient 1/(4n). Half of the second derivative's bound of ¼ is "
        "1/(8n), which is used here: at a margin of 0.4 and noise of sd 0.1, the true gap is "
        "0.001195; with 1/8 it is 0.001196, and with 1/4 twice as large.",
    ),
    Difference(
        2,
        "chain",
        "The jitter kernel",
        "A normalised Gaussian step has no factor (2π)^(d/2) in its Fourier transform, and the "
        "terms after the first are not negligible. The kernel used here is a geometric mixture "
        "of Gaussians of variance iσ², with a total variance of (1+β)σ² per coordinate.",
    ),
    Difference(
        3,
        "chain",
        "The mixing bound",
        "The ℓ2 bound needs ‖A‖₂ ≤ β, which holds only for doubly stochastic steps; if all states "
        "move to one and β = 10, it is exceeded by 27 %. Here, the bound (β/(β+1))^n in total "
        "variation is used, which always holds.",
    ),
    Difference(
        4,
        "approximation",
        "The sign of the first-order Taylor term",
        "It is printed with the wrong sign. The term vanishes at the averaged features, so no "
        "number changes.",
    ),
    Difference(
        5,
        "alignment",
        "Alignment from mini-batches",
        "The authors' code averages kernels over mini-batches, which makes the ratio depend on "
        "the batch size. Here, it is computed from sums over all pairs, at no additional cost.",
    ),
    Difference(
        6,
        "approximation",
        "Two second-order terms",
        "The authors' fast and slow code compute two different things, Gauss-Newton and the full "
        "Hessian. They agree for linear and ReLU heads and not for others; here the choice has "
        "a name.",
    ),
    Difference(
        7,
        "averaging",
        "Layer 3 of the averaging figure",
        "The authors' code used the formula for a linear head at this layer, where it does not "
        "hold, so their points at layer 3 are in doubt. Here, every layer uses the general "
        "formula. Their mixed augmentation also returned only its blurs.",
    ),
    Difference(
        8,
        "chain",
        "Making a lossy transformation reversible",
        "The matrix of the footnote is one choice among many. Here, it is available in addition to "
        "Metropolis-Hastings, which also gives a symmetric stochastic matrix on the same states.",
    ),
    Difference(
        9,
        "alignment",
        "Alignment does not predict what a network gains",
        "Over 32 transformations, in five comparisons on four sources of images, the mean rank "
        "correlation of alignment with the real gains was 0.06. The paper's score is available "
        "unchanged; the default score is a brief trial, which is also shown.",
    ),
)


def differences(experiment: str) -> tuple[str, ...]:
    """Return the differences that belong to an experiment, each with its title."""
    return tuple(f"{d.title}. {d.words}" for d in ERRATA if d.experiment == experiment)
