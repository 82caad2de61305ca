"""Augmented Fourier features: ψ(x) = E φ(t), with no image transformed (Section 5.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Self

import torch
from torch import Tensor, nn

from augury._base.errors import AuguryError
from augury._base.given import as_number, as_seed, as_whole, check_kind
from augury._base.rng import Rng
from augury.augmentations.base import Augmentation, Nodes, Params, matrices, to_device
from augury.features.base import FeatureMap
from augury.features.fourier import (
    FourierFeatures,
    check_no_gradient,
    products,
    waves,
    waves_and_contrasts,
)

_CHUNK = 1 << 24  # values of transformed frequencies made in one go
_SMALL = 1024  # values of an example, up to which a map is a matrix that is cheap to multiply by
_SPARSE = 64  # values for one that is not zero, from which on a map's zeros are left out
_BLOCK = 1 << 22  # phases held at once on a CPU: 8 MiB in bfloat16, which stay in its cache
_BLOCK_CUDA = 1 << 27


class AugmentedFourier(FeatureMap):
    """ψ(x) = Σ_j w_j φ(A_j x), the average of the Fourier features of an example's views.

    If the augmentation is linear, φ(A x) has phases ω·(A x) = (Aᵀω)·x: the frequencies are
    transformed once, by the adjoint, and no example is ever transformed. The paper draws s random
    maps; here, they are the nodes of a quadrature rule if the family has one. Otherwise, every
    frequency gets its own maps, so that the average is over d/2 · n maps at the cost of n.

    Parameters
    ----------
    augmentation
        Any; if it is not linear, examples are transformed and their features averaged, the same
        n maps for all, and `note` says so.
    phi
        The Fourier features of the views.
    n_views
        n: nodes of the rule, or maps for each frequency.
    memory
        GiB that transformed frequencies may take; with more, examples are transformed instead.
    shared
        Whether maps that are drawn must be the same for all frequencies, so that a view is one
        transformed example: `views_of` and `leading` need that.
    seed
        Random seed of the maps, if they are drawn.

    Notes
    -----
    One product of ``(b, pixels)`` and ``(pixels, d/2)`` a node. Making the nodes costs about as
    much as transforming n · d/2 images. Two nodes of equal weight, with phases θ ± δ, take three
    waves and not four: their sum is 2 cos δ [cos θ, sin θ].

    Examples
    --------
    >>> from augury.augmentations import rotation
    >>> from augury.features import AugmentedFourier, FourierFeatures
    >>> digits = torch.rand(10, 1, 8, 8)
    >>> psi = AugmentedFourier(rotation(15), FourierFeatures(64, gamma=0.1), n_views=4)
    >>> psi.fit(digits)(digits).shape
    torch.Size([10, 64])
    """

    def __init__(
        self,
        augmentation: Augmentation,
        phi: FourierFeatures,
        *,
        n_views: int = 6,
        memory: float = 2.0,
        shared: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_kind("augmentation", augmentation, Augmentation, "an augmentation; use augury.parse")
        check_kind("phi", phi, FourierFeatures, "FourierFeatures")
        n_views, seed = as_whole("n_views", n_views, 1), as_seed(seed)
        memory = as_number("memory", memory, 0)
        self.augmentation, self.phi = augmentation, phi
        self.n_views, self.memory, self.seed = n_views, memory, seed
        self._own = self._averaged = not shared
        self.d = phi.d
        self.note = ""
        self._maps: Nodes | None = None
        self._pairs: list[tuple[int, ...]] = []
        self.nodes: Tensor | None
        self.weights: Tensor | None
        self.register_buffer("nodes", None, persistent=False)
        self.register_buffer("weights", None, persistent=False)
        self.register_load_state_dict_post_hook(_renew)

    def fit(self, x: Tensor, y: Tensor | None = None) -> Self:
        """Fit φ to examples as they are, then transform its frequencies."""
        self.phi.fit(x, y)
        self.prepare(x)
        return self

    def prepare(self, like: Tensor) -> None:
        """Make the nodes from the frequencies of φ, on the device and of the type of `like`."""
        shape = self.phi.shape
        self.augmentation.check(shape)
        rule = self.augmentation.nodes(self.n_views)
        size = self.n_views if rule is None else len(rule.weights)
        self.note = self._why_explicit(size, like)
        if rule is None:
            own = self.d // 2 if self._own and not self.note else 1
            index = torch.arange(own, device=like.device)
            params = self.augmentation.draw(size, Rng(self.seed, index))
            rule = Nodes(params, torch.full((size,), 1 / size, dtype=torch.float64))
            self._own = own > 1
        else:
            self._own = False
        self.weights = rule.weights.to(like)
        params = to_device(rule.params, like.device)
        self.nodes = None if self.note else self._transform(like, params)
        # Maps of whole views are needed again; on the CPU, since a module does not move them.
        kept = to_device(params, torch.device("cpu")) if self.shared else None
        self._maps = Nodes(kept, rule.weights)
        self._pairs = [(j,) for j in range(size)]
        if self.nodes is not None:
            self._pairs = _pairs(rule.weights)
            for one, two in (pair for pair in self._pairs if len(pair) == 2):
                half = (self.nodes[one] - self.nodes[two]) / 2
                self.nodes[one] -= half
                self.nodes[two] = half
            if self.phi.short:
                self.nodes = self.nodes.to(torch.bfloat16)

    def _why_explicit(self, size: int, like: Tensor) -> str:
        if not self.augmentation.linear:
            return (
                f"{self.augmentation} is not linear in its input, so examples are transformed "
                f"{size} times{' and their features averaged' if self._averaged else ''}"
            )
        if self.phi.frequencies is None:
            return "structured frequencies stay as they are, so examples are transformed instead"
        need = size * self.phi.frequencies.numel() * like.element_size() / 2**30
        if need > self.memory:
            return (
                f"transformed frequencies would take {need:.1f} GiB, over the {self.memory:g} "
                "allowed, so examples are transformed instead"
            )
        return ""

    def _transform(self, like: Tensor, params: Params) -> Tensor:
        """Apply the adjoint of every map to every frequency: ``(n, d/2, pixels)``.

        Where examples are small and maps are shared, as matrices, whose rows are views of
        single values.
        """
        assert self.phi.frequencies is not None
        assert self.weights is not None
        omega, n = self.phi.frequencies.to(like), len(self.weights)
        count, pixels = omega.shape
        if self.shared and pixels <= count and n * pixels**2 <= 4 * _CHUNK:
            some = matrices(
                self.augmentation, self.phi.shape, params, like, slice(None, None, -(-pixels // 8))
            )
            sparse = like.device.type == "cpu" and like.dtype in (torch.float32, torch.float64)
            sparse = sparse and _SPARSE * int(some.count_nonzero()) <= some.numel()
            if sparse or pixels <= _SMALL:
                maps = matrices(self.augmentation, self.phi.shape, params, like)
                kind = torch.bfloat16 if self.phi.short else omega.dtype
                return _sparse_product(maps, omega, kind) if sparse else omega @ maps.mT
        out = omega.new_empty(n, *omega.shape)
        step = max(1, _CHUNK // (n * omega.shape[1]))
        for start in range(0, len(omega), step):
            rows = slice(start, start + step)
            images = omega[rows].unflatten(1, self.phi.shape)
            mine = _columns(params, rows)
            out[:, rows] = self.augmentation.adjoint(images, mine).flatten(2)
        return out

    def _phases(self, x: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Return the phases ``(b, d/2)`` of each pair of nodes, each in place of the one before.

        They are θ and δ for two nodes, whose phases are θ ± δ, and θ for one that is alone.
        """
        if self._maps is None:
            raise AuguryError("these augmented features have no nodes yet: call fit first")
        if self.nodes is None:
            for j in range(len(self._maps.weights)):
                params = to_device(_view(self._maps.params, j), x.device)
                view = self.augmentation.apply(x.unsqueeze(0), params)
                yield (self.phi.phases(view.squeeze(0)),)
            return
        flat, offsets = x.flatten(1), self.phi.offsets
        flat = flat.bfloat16() if self.phi.short else flat
        held: dict[int, Tensor] = {}
        for pair in self._pairs:
            for k, j in enumerate(pair):
                held[k] = products(flat, self.nodes[j], short=self.phi.short, out=held.get(k))
            phase = held[0] if offsets is None else held[0] + offsets
            yield (phase, held[1]) if len(pair) == 2 else (phase,)

    def _phases_of_views(self, x: Tensor) -> Iterator[Tensor]:
        """Return the phases of each view, in the order of `_order`."""
        for phase, *apart in self._phases(x):
            yield from (phase + apart[0], phase - apart[0]) if apart else (phase,)

    @property
    def _order(self) -> list[int]:
        """The numbers of the nodes, pair by pair."""
        return [j for pair in self._pairs for j in pair]

    def forward(self, x: Tensor) -> Tensor:
        check_no_gradient(x)
        return self._averages(x)

    @torch.no_grad()
    def _averages(self, x: Tensor) -> Tensor:
        if self.weights is None:
            raise AuguryError("these augmented features have no nodes yet: call fit first")
        given, size = self.weights.tolist(), self._together(x)
        weights = [sum(given[j] for j in pair) for pair in self._pairs]
        kind = torch.promote_types(x.dtype, torch.float32)
        out = x.new_empty(len(x), self.d, dtype=kind)
        for part, rows in zip(x.split(size), out.split(size), strict=True):
            waves(self._phases(part), weights, self.d, out=rows)
        return out

    def _together(self, x: Tensor) -> int:
        """Return how many examples' phases are held at once."""
        return max(1, 2 * (_BLOCK_CUDA if x.is_cuda else _BLOCK) // self.d)

    @property
    def shared(self) -> bool:
        """Whether all frequencies see the same maps, so that a view is one transformed x."""
        return not self._own

    def views_of(self, x: Tensor) -> Tensor:
        """Return φ(A_j x) of every view: ``(n, b, d)``, n times the memory of `forward`."""
        self._check_shared()
        views = [waves([(phase,)], [1.0], self.d) for phase in self._phases_of_views(x)]
        place = {j: k for k, j in enumerate(self._order)}
        return torch.stack([views[place[j]] for j in range(len(views))])

    def leading(self, x: Tensor, index: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """Return ψ, and for every step-th example a row v with vvᵀ ≈ Cov[φ(t)].

        Along a curve of views, as of rotation, v is the part of φ(t) that is linear in t;
        where views have no order, each example gets a random contrast of them, of which the
        covariance is the mean. Either way ‖v‖² is the whole variance, E‖Δ‖² = 1 − ‖ψ‖².

        Parameters
        ----------
        x
            Examples ``(b, *shape)``.
        index
            Their numbers ``(b,)``, which decide the contrasts.
        step
            One example in so many gets a row, the first among them.

        Notes
        -----
        The cost of `forward`, and a few sums.
        """
        self._check_shared()
        assert self.weights is not None
        order, size = self._order, -(-self._together(x) // step) * step
        weights = self.weights[order].tolist()
        contrasts = self._contrasts(index[::step])[order].to(x)
        mean, row = x.new_empty(len(x), self.d), x.new_empty(contrasts.shape[1], self.d)
        shares = contrasts.split(size // step, 1)
        for k, (part, share) in enumerate(zip(x.split(size), shares, strict=True)):
            found = waves_and_contrasts(self._phases_of_views(part), weights, self.d, share, step)
            mean[k * size : k * size + len(part)], row[k * size // step :][: share.shape[1]] = found
        variance = (1 - mean[::step].square().sum(1)).clamp_min(0)
        length = row.norm(dim=1).clamp_min(torch.finfo(row.dtype).tiny)
        return mean, row * (variance.sqrt() / length).unsqueeze(1)

    def _contrasts(self, index: Tensor) -> Tensor:
        """Return combinations of the views that sum to zero: ``(n, c)``."""
        assert self._maps is not None
        weights, params = self._maps.weights.cpu(), self._maps.params
        if isinstance(params, Tensor) and params.is_floating_point() and params[0].numel() == 1:
            at = params.flatten().double().cpu()
            return (weights * (at - weights @ at)).unsqueeze(1).expand(-1, len(index))
        signs = Rng(self.seed, index.cpu()).uniform(len(weights), low=-1.0).double()
        return weights.unsqueeze(1) * (signs - weights @ signs)

    def _check_shared(self) -> None:
        if not self.shared:
            raise AuguryError(
                "each frequency has maps of its own, so there are no whole views; "
                "make the features with shared=True"
            )

    def describe(self) -> str:
        how = "averaged over" if self._averaged else "of views of"
        return f"{self.phi.describe()}, {how} {self.augmentation}"


def _sparse_product(maps: Tensor, omega: Tensor, dtype: torch.dtype) -> Tensor:
    """Return omega @ maps.mT of ``(n, p, p)`` that are mostly zero, on a CPU: ``(n, c, p)``."""
    from scipy.sparse import csr_array  # a tenth of a second to import

    columns = omega.mT.contiguous().numpy()
    out = omega.new_empty(len(maps), *columns.shape, dtype=dtype)
    for found, a in zip(out, maps, strict=True):
        found.copy_(torch.from_numpy(csr_array(a.numpy()) @ columns))
    return out.mT


def _pairs(weights: Tensor) -> list[tuple[int, ...]]:
    """Return the numbers of nodes, from both ends inwards; two together if they weigh the same."""
    last, found = len(weights) - 1, []
    for j in range(len(weights) // 2):
        same = math.isclose(float(weights[j]), float(weights[last - j]))
        found += [(j, last - j)] if same else [(j,), (last - j,)]
    return found + [(last // 2,)] * (len(weights) % 2)


def _renew(features: nn.Module, keys: object) -> None:
    """Make the nodes again, once other frequencies of φ have been loaded."""
    assert isinstance(features, AugmentedFourier)
    if features.weights is not None:
        features.prepare(features.weights)


def _columns(params: object, rows: slice) -> object:
    """Keep the maps of some frequencies, where each has its own; shared maps stay as they are."""
    if isinstance(params, tuple):
        return tuple(_columns(p, rows) for p in params)
    assert isinstance(params, Tensor)
    return params if params.shape[1] == 1 else params[:, rows]


def _view(params: object, j: int) -> object:
    """Keep one view's map."""
    if isinstance(params, tuple):
        return tuple(_view(p, j) for p in params)
    assert isinstance(params, Tensor)
    return params[j : j + 1]
