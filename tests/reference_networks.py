"""Networks that can be split by hand, and slow twins of the averaged losses, from the paper."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Half = Callable[[Tensor], Tensor]


def lenet(activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """LeNet for 12 by 12 pixels."""
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(1, 3, 3, padding=1),
            act1=activation(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(3, 4, 3),
            act2=activation(),
            pool2=nn.MaxPool2d(2),
            flat=nn.Flatten(),
            fc1=nn.Linear(16, 8),
            act3=activation(),
            fc2=nn.Linear(8, 3),
        )
    )


def lenet_halves(model: nn.Sequential) -> dict[str, tuple[Half, Half]]:
    """Each layer, with the network up to it and from it on, written out."""
    parts = list(model)
    return {
        name: (nn.Sequential(*parts[: k + 1]), nn.Sequential(*parts[k + 1 :]))
        for k, name in enumerate(dict(model.named_children()))
    }


class Block(nn.Module):
    """A residual block as torchvision's: one ReLU used twice, in place."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.down = nn.Conv2d(inputs, outputs, 1, stride) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.down is None else self.down(x)
        return self.relu(out)


class ResNet(nn.Module):
    """A stem, two stages of two blocks, a pool and a head, with functional glue in between."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, 3, 1, 1)
        self.bn1 = nn.BatchNorm2d(3)
        self.layer1 = nn.Sequential(Block(3, 3), Block(3, 3))
        self.layer2 = nn.Sequential(Block(3, 5, 2), Block(5, 5))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        b = x.shape[0]
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.pool(self.layer2(self.layer1(x)))
        return self.fc(self.drop(x.reshape(b, -1)))


def resnet_halves(m: ResNet) -> dict[str, tuple[Half, Half]]:
    def stem(x: Tensor) -> Tensor:
        return F.relu(m.bn1(m.conv1(x)))

    def end(x: Tensor) -> Tensor:
        return m.fc(m.drop(m.pool(x).flatten(1)))

    a, b = m.layer1
    c, d = m.layer2
    return {
        "conv1": (m.conv1, lambda f: end(d(c(b(a(F.relu(m.bn1(f)))))))),
        "bn1": (lambda x: m.bn1(m.conv1(x)), lambda f: end(d(c(b(a(F.relu(f))))))),
        "layer1.0": (lambda x: a(stem(x)), lambda f: end(d(c(b(f))))),
        "layer1.1": (lambda x: b(a(stem(x))), lambda f: end(d(c(f)))),
        "layer2.0": (lambda x: c(b(a(stem(x)))), lambda f: end(d(f))),
        "layer2.1": (lambda x: d(c(b(a(stem(x))))), end),
        "pool": (lambda x: m.pool(d(c(b(a(stem(x)))))), lambda f: m.fc(m.drop(f.flatten(1)))),
        "fc": (lambda x: end(d(c(b(a(stem(x)))))), lambda f: f),
    }


class Attention(nn.Module):
    """A block of a vision transformer: attention and a small network, each beside a skip."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """A vision transformer for 12 by 12 pixels, with a class token and positions."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.patch = nn.Conv2d(1, width, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.place = nn.Parameter(torch.randn(1, 10, width))
        self.blocks = nn.Sequential(Attention(width), Attention(width))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        b = x.shape[0]
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(b, -1, -1), x], dim=1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


def vit_halves(m: ViT) -> dict[str, tuple[Half, Half]]:
    def embed(f: Tensor) -> Tensor:
        f = f.flatten(2).transpose(1, 2)
        return torch.cat([m.token.expand(len(f), -1, -1), f], dim=1) + m.place

    def end(f: Tensor) -> Tensor:
        return m.head(m.norm(f)[:, 0])

    a, b = m.blocks
    return {
        "patch": (m.patch, lambda f: end(b(a(embed(f))))),
        "blocks.0": (lambda x: a(embed(m.patch(x))), lambda f: end(b(f))),
        "blocks.1": (lambda x: b(a(embed(m.patch(x)))), end),
        "norm": (lambda x: m.norm(b(a(embed(m.patch(x))))), lambda f: m.head(f[:, 0])),
        "head": (m, lambda f: f),
    }


def averaged(lower: Half, upper: Half, views: Tensor, weights: Tensor) -> Tensor:
    """f(Σ_k w_k φ(t_k)): the features of all views in one batch, averaged, then the rest."""
    features = lower(views.flatten(0, 1)).unflatten(0, views.shape[:2])
    mean = sum(w * f for w, f in zip(weights, features, strict=True))
    return upper(mean)


def second_order_term(
    upper: Half,
    features: Tensor,
    weights: Tensor,
    y: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    curvature: str,
) -> Tensor:
    """½ E[Δᵀ H Δ] of each example, with the whole matrix H: ∇²(l ∘ f), or JᵀlʹʹJ."""
    mean = torch.einsum("n,nb...->b...", weights, features)
    out = []
    for i in range(len(y)):
        psi, target = mean[i], y[i : i + 1]

        def output(flat: Tensor, psi: Tensor = psi) -> Tensor:
            return upper(flat.view(1, *psi.shape))

        at = psi.flatten().detach()
        if curvature == "hessian":
            h = torch.autograd.functional.hessian(
                lambda f, t=target: loss(output(f), t).squeeze(0), at
            )
        else:
            jacobian = torch.autograd.functional.jacobian(lambda f: output(f).flatten(), at)
            inner = torch.autograd.functional.hessian(
                lambda o, t=target: loss(o.unsqueeze(0), t).squeeze(0), output(at).flatten()
            )
            h = jacobian.mT @ inner @ jacobian
        total = torch.zeros((), dtype=at.dtype)
        for w, f in zip(weights, features[:, i], strict=True):
            delta = (f - psi).flatten()
            total = total + 0.5 * w * (delta @ h @ delta)
        out.append(total)
    return torch.stack(out)


NETWORKS = {
    "lenet": (lenet, lenet_halves),
    "resnet": (ResNet, resnet_halves),
    "vit": (ViT, vit_halves),
}


def make(name: str, seed: int = 0) -> tuple[nn.Module, dict[str, tuple[Half, Half]]]:
    """A network in double precision, with its halves at each layer."""
    torch.manual_seed(seed)
    build, halves = NETWORKS[name]
    model = build().double()
    return model, halves(model)


def batch(b: int = 5, seed: int = 0, classes: int = 3) -> tuple[Tensor, Tensor]:
    """Images and labels."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(b, 1, 12, 12, generator=generator, dtype=torch.float64)
    return x, torch.arange(b) % classes
