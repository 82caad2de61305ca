"""Random Fourier features (Rahimi and Recht, 2007) of shift-invariant kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from augury._base.errors import AuguryError
from augury._base.given import as_seed, as_whole, is_one_of
from augury._base.text import shown
from augury.features.bandwidth import RULES, choose_gamma
from augury.features.base import FeatureMap, check_sample
from augury.features.frequencies import ShiftInvariantKernel, check_sampling, draw_dense
from augury.features.hadamard import HadamardFrequencies

_SAMPLE = 1000
_STRIP = 1 << 17  # phases whose waves are taken together on a CPU: 0.5 MiB


class FourierFeatures(FeatureMap):
    """φ(x) = √(2/d) [cos Ωx, sin Ωx], so that φ(x)ᵀφ(x') ≈ K(x, x').

    Parameters
    ----------
    d
        The number of features, even: d/2 frequencies, a cosine and a sine of each.
    gamma
        The kernel's γ, or how to choose it from data: ``"alignment"`` searches a grid around the
        median heuristic for the γ whose kernel agrees best with the labels (Appendix E.1 of the
        paper); ``"median"`` is one over the median squared distance; ``"held-out"`` is the γ with
        the smallest error on held-out examples.
    kernel
        ``"gaussian"``, exp(−γ‖x − x'‖²); ``"laplacian"``, exp(−γ‖x − x'‖₁); ``"matern"``.
    nu
        The Matérn kernel's smoothness: 0.5, 1.5 or 2.5.
    sampling
        How to draw the frequencies: ``"iid"``; ``"orthogonal"``, with less variance; or
        ``"hadamard"``, which has the same structure without a dense matrix and is the cheapest for
        inputs with many values.
    mean, std
        Mean and standard deviation with which pixels are normalised first: numbers, or one for each
        channel. They are folded into the frequencies and phases, at no cost.
    seed
        Random seed of the frequencies.
    """

    def __init__(
        self,
        d: int = 1024,
        *,
        gamma: float | str = "alignment",
        kernel: str = "gaussian",
        nu: float = 1.5,
        sampling: str = "iid",
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if as_whole("d", d) < 2 or d % 2:
            raise AuguryError(f"the number of Fourier features must be even and positive, not {d}")
        seed = as_seed(seed)
        number: Any = gamma if isinstance(gamma, Real) else 0
        if not (0 < number < math.inf or is_one_of(gamma, RULES)):
            raise AuguryError(
                f"gamma must be positive or one of {', '.join(RULES)}; not {shown(gamma)}"
            )
        self.d, self.gamma, self.seed = d, gamma, seed
        self.kernel = ShiftInvariantKernel(kernel, nu)
        check_sampling(self.kernel, sampling)
        self.sampling = sampling
        self.mean, self.std = mean, std
        centre, spread = (_numbers(name, v) for name, v in (("mean", mean), ("std", std)))
        if not (spread.isfinite() & (spread > 0)).all():
            raise AuguryError(f"std must be positive and finite, not {shown(std)}")
        if not centre.isfinite().all():
            raise AuguryError(f"mean must be finite, not {shown(mean)}")
        self.gamma_: float | None = None
        self.shape: tuple[int, ...] = ()
        self.frequencies: Tensor | None
        self.offsets: Tensor | None
        self.scale: Tensor | None
        for name in ("frequencies", "offsets", "scale"):
            self.register_buffer(name, None)
        self._rounded: Tensor | None
        self.register_buffer("_rounded", None, persistent=False)
        self.structured: HadamardFrequencies | None = None
        self.short = False
        """Whether products with frequencies may be taken in bfloat16."""

    def fit(self, x: Tensor, y: Tensor | None = None) -> Self:
        """Choose γ and draw the frequencies; cost O(sample² · pixels) for the choice."""
        check_sample(x, y)
        self.shape = tuple(x.shape[1:])
        mean, std = (self._per_pixel(value).to(x) for value in (self.mean, self.std))
        if isinstance(self.gamma, str):
            flat = (x[:_SAMPLE].flatten(1) - mean) / std
            distances = torch.cdist(flat, flat, p=float(self.kernel.norm))
            target = None if y is None else y[:_SAMPLE]
            gamma = choose_gamma(
                self.gamma, distances, target, self.kernel.values, self.kernel.norm
            )
        else:
            gamma = float(self.gamma)
        self.draw(self.shape, gamma)
        return self.to(x)

    def draw(self, shape: tuple[int, ...], gamma: float) -> None:
        """Draw the frequencies for inputs of a shape and a known γ, in float64 on the CPU."""
        self.shape, self.gamma_, self._rounded = shape, gamma, None
        mean, std = (self._per_pixel(value) for value in (self.mean, self.std))
        count, pixels = self.d // 2, math.prod(shape)
        unit = gamma if self.kernel.norm == 1 else math.sqrt(2 * gamma)
        if self.sampling == "hadamard":
            rng = np.random.default_rng(self.seed)
            self.structured = HadamardFrequencies(count, pixels, rng)
            stretch = self.kernel.lengths(count, rng)
            if stretch is not None:
                self.structured.lengths *= stretch
            self.scale = unit / std
            at = self.structured((mean * self.scale).unsqueeze(0)).squeeze(0)
        else:
            omega = draw_dense(self.kernel, self.sampling, count, pixels, self.seed)
            self.frequencies = omega.mul_(unit / std)
            at = self.frequencies @ mean if bool(mean.any()) else mean[:0]
        self.offsets = -at if bool(at.any()) else None

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._rounded = None  # of the frequencies before

    def _per_pixel(self, value: float | Sequence[float]) -> Tensor:
        """Spread a number, or one for each channel, over the pixels of an example."""
        numbers = torch.as_tensor(value, dtype=torch.float64)
        channels = self.shape[0] if self.shape else 1
        if numbers.dim() > 1 or (numbers.dim() == 1 and len(numbers) not in (1, channels)):
            raise AuguryError(
                f"mean and std must be a number, or one for each of the {channels} channels; "
                f"got shape {tuple(numbers.shape)}"
            )
        inside = math.prod(self.shape) // channels
        return numbers.expand(channels).repeat_interleave(inside)

    def phases(self, x: Tensor) -> Tensor:
        """Return Ωx, of normalised x: ``(b, d/2)``."""
        flat = x.flatten(1)
        if flat.shape[1] != math.prod(self.shape) and self.shape:
            raise AuguryError(
                f"these Fourier features are of examples of shape {self.shape}, got "
                f"{tuple(x.shape[1:])}"
            )
        if self.structured is not None and self.scale is not None:
            phase = self.structured(flat * self.scale)
        elif self.frequencies is not None:
            if self.short and self._rounded is None:
                with torch.inference_mode(False):  # it outlives the caller's
                    self._rounded = self.frequencies.bfloat16()
            matrix = self._rounded if self.short else self.frequencies
            assert matrix is not None
            phase = products(flat, matrix, short=self.short)
        else:
            raise AuguryError("these Fourier features have no frequencies yet: call fit first")
        return phase if self.offsets is None else phase + self.offsets

    def forward(self, x: Tensor) -> Tensor:
        check_no_gradient(x)
        return waves([(self.phases(x),)], [1.0], self.d)

    def describe(self) -> str:
        gamma = "" if self.gamma_ is None else f", gamma {self.gamma_:.3g}"
        how = "" if self.sampling == "iid" else f"{self.sampling} "
        return f"{self.d} {how}Fourier features of the {self.kernel.title} kernel{gamma}"


def _numbers(name: str, value: float | Sequence[float]) -> Tensor:
    try:
        return torch.as_tensor(value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise AuguryError(
            f"{name} must be a number, or one for each channel, not {shown(value)}"
        ) from None


def products(x: Tensor, frequencies: Tensor, *, short: bool, out: Tensor | None = None) -> Tensor:
    """Return xΩᵀ; in 8 bits, bfloat16, where that is enough, at twice the speed or more.

    Frequencies that are rounded are frequencies as good as those that were drawn, and a rounded
    input or phase is off by less than 1 in 256. Written to `out` where that is given.
    """
    if not short:
        return torch.mm(x, frequencies.mT, out=out)
    return torch.mm(x.bfloat16(), frequencies.mT.bfloat16(), out=out)


def check_no_gradient(x: Tensor) -> None:
    """Raise if a gradient with respect to x would be lost: features are written in place."""
    if x.requires_grad and torch.is_grad_enabled():
        raise AuguryError(
            "Fourier features have no gradient with respect to their input; pass x.detach()"
        )


def waves(
    phases: Iterable[tuple[Tensor, ...]],
    weights: Sequence[float],
    d: int,
    out: Tensor | None = None,
) -> Tensor:
    """Return √(2/d) Σ_j w_j [cos θ_j, sin θ_j] of phases ``(b, d/2)``; the phases are used up.

    With δ_j beside θ_j, for two phases θ_j ± δ_j, it is w_j cos δ_j [cos θ_j, sin θ_j].

    Waves and sums are in float32 at least, whatever the phases are in. They are written to `out`
    where that is given. Memory is taken once and not for each view, since to be given new pages by
    the system takes longer than a cosine; on a CPU, a strip of rows at a time stays in its cache.
    """
    half, unit = d // 2, math.sqrt(2 / d)
    spare: list[Tensor] = []
    for j, (pair, weight) in enumerate(zip(phases, weights, strict=True)):
        phase = pair[0]
        kind = torch.promote_types(phase.dtype, torch.float32)
        if out is None:
            out = phase.new_empty(len(phase), d, dtype=kind)
        strip = max(1, len(phase) if phase.is_cuda else _STRIP // half)
        if not spare:
            rows, needed = min(strip, len(phase)), 1 if phase.dtype == kind else 3
            spare = [phase.new_empty(rows, half, dtype=kind) for _ in range(needed)]
        parts = zip(out.split(strip), *(one.split(strip) for one in pair), strict=True)
        for total, *angles in parts:
            cos, *copies = (one[: len(total)] for one in spare)
            if copies:
                angles = [copies[k].copy_(angle) for k, angle in enumerate(angles)]
            torch.cos(angles[0], out=cos)
            beat = [apart.cos_() for apart in angles[1:]]
            for wave, sums in ((cos, total[:, :half]), (angles[0].sin_(), total[:, half:])):
                if beat and j:
                    sums.addcmul_(wave, beat[0], value=unit * weight)
                elif beat:
                    torch.mul(wave.mul_(unit * weight), beat[0], out=sums)
                elif j:
                    sums.add_(wave, alpha=unit * weight)
                else:
                    torch.mul(wave, unit * weight, out=sums)
    assert out is not None
    return out


def waves_and_contrasts(
    phases: Iterable[Tensor], weights: Sequence[float], d: int, contrasts: Tensor, step: int
) -> tuple[Tensor, Tensor]:
    """Return the average and, for some examples, another combination Σ_j a_j φ_j of the views.

    Parameters
    ----------
    phases
        Of each view, ``(b, d/2)``.
    weights
        w, one for each view.
    d
        The number of features.
    contrasts, step
        a, ``(n, c)``: one for every step-th example, from the first.
    """
    mean = contrast = torch.empty(0)
    for j, (phase, weight) in enumerate(zip(phases, weights, strict=True)):
        view = waves([(phase,)], [1.0], d)
        if j == 0:
            mean, contrast = torch.zeros_like(view), torch.zeros_like(view[::step])
        mean.add_(view, alpha=weight)
        contrast.addcmul_(view[::step], contrasts[j].unsqueeze(1))
    return mean, contrast
