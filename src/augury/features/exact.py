"""Convolutions in full float32 on a GPU, so that features are the same on every device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from augury._base.given import check_tensor

Method = TypeVar("Method", bound=Callable[..., Any])


def exact_convolutions(method: Method) -> Method:
    """Make a method ``(self, x, ...)`` use no TF32, which torch allows in convolutions by default.

    TF32 keeps 10 bits of a number, and a score would move by more than 1e-4 with it.
    """

    @functools.wraps(method)
    def exact(self: Any, x: Tensor, *args: Any) -> Any:
        check_tensor(x)
        exactly = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
        with exactly if x.is_cuda else nullcontext():
            return method(self, x, *args)

    return cast(Method, exact)
