"""Augmentation as a Markov chain with restarts, and the kernel it induces."""

from augury.augmentations.chain import Chain
from augury.markov.chain import Checks, FiniteChain
from augury.markov.checks import Reversibility
from augury.markov.classifier import ChainClassifier
from augury.markov.jitter import (
    JitterFeatures,
    JitterKernel,
    effective_bandwidth,
    jitter_density,
)
from augury.markov.kernel import ChainKernel
from augury.markov.nearest import nearest_chain
from augury.markov.orbits import Orbits, enumerate_orbits
from augury.markov.process import Step, sample, stream, walk
from augury.markov.rates import LearnedRates, alignment, learn_rates, loo_log_loss
from augury.markov.solve import Solution
from augury.markov.symmetrise import footnote, metropolis
from augury.markov.update import (
    UpdatedKernel,
    add_augmentation,
    change_rates,
    remove_augmentation,
)

__all__ = [
    "Chain",
    "ChainClassifier",
    "ChainKernel",
    "Checks",
    "FiniteChain",
    "JitterFeatures",
    "JitterKernel",
    "LearnedRates",
    "Orbits",
    "Reversibility",
    "Solution",
    "Step",
    "UpdatedKernel",
    "add_augmentation",
    "alignment",
    "change_rates",
    "effective_bandwidth",
    "enumerate_orbits",
    "footnote",
    "jitter_density",
    "learn_rates",
    "loo_log_loss",
    "metropolis",
    "nearest_chain",
    "remove_augmentation",
    "sample",
    "stream",
    "walk",
]
