"""Augmentations inside what people train with: Hugging Face, torchvision, Lightning, loaders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets as tv_datasets
from torchvision.transforms import v2

from augury import TransformedDataset, parse

PIXELS = np.random.default_rng(0).integers(0, 256, (8, 12, 10, 3), dtype=np.uint8)
TO_TENSOR = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


def hugging_face() -> Any:
    datasets = pytest.importorskip("datasets", reason="comes with the extra dev")
    return datasets.Dataset.from_dict(
        {"image": [Image.fromarray(p) for p in PIXELS], "label": list(range(8))},
        features=datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")}),
    )


def test_set_transform_of_hugging_face() -> None:
    data, augment = hugging_face(), parse("horizontal_flip >> noise(0.02)")

    def transform(batch: dict[str, list[Any]]) -> dict[str, Any]:
        return {**batch, "image": [TO_TENSOR(view) for view in augment(batch["image"])]}

    data.set_transform(transform)
    first, second = data[0]["image"], data[0]["image"]
    assert first.shape == (3, 12, 10)
    assert not torch.equal(first, second)  # a new view each time
    batches = list(DataLoader(data, batch_size=3))
    assert [tuple(b["image"].shape) for b in batches] == [
        (3, 3, 12, 10),
        (3, 3, 12, 10),
        (2, 3, 12, 10),
    ]
    assert torch.cat([b["label"] for b in batches]).tolist() == list(range(8))
    for image, pixels in zip(torch.cat([b["image"] for b in batches]), PIXELS, strict=True):
        plain = torch.from_numpy(pixels).movedim(-1, 0) / 255
        nearest = min(float((image - p).abs().mean()) for p in (plain, plain.flip(-1)))
        assert nearest < 0.03  # its own image, flipped or not, with a little noise


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for k, pixels in enumerate(PIXELS):
        (tmp_path / f"class{k % 2}").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / f"class{k % 2}" / f"{k}.png")
    return tmp_path


@pytest.mark.parametrize("workers", [0, 2])
def test_image_folder_of_torchvision_in_workers(folder: Path, workers: int) -> None:
    pipeline = v2.Compose([parse("rotation(20) >> noise(0.1)"), TO_TENSOR])
    data = tv_datasets.ImageFolder(str(folder), transform=pipeline)
    loader = DataLoader(data, batch_size=4, num_workers=workers)
    first, second = (torch.cat([images for images, _ in loader]) for _ in range(2))
    assert first.shape == (8, 3, 12, 10)
    assert not torch.equal(first, second)
    assert len({image.numpy().tobytes() for image in first}) == 8


class Small:
    """A Lightning module that keeps what its batches held."""

    @staticmethod
    def make(lightning: Any) -> Any:
        class Module(lightning.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.net, self.seen = nn.Sequential(nn.Flatten(), nn.Linear(360, 2)), []

            def training_step(self, batch: Any, index: int) -> Any:
                images, labels = batch
                self.seen.append(images.clone())
                return nn.functional.cross_entropy(self.net(images), labels)

            def configure_optimizers(self) -> Any:
                return torch.optim.SGD(self.parameters(), lr=0.1)

        return Module()


class Pairs(Dataset[Any]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(PIXELS[index]).movedim(-1, 0) / 255, index % 2


@pytest.mark.filterwarnings("ignore")  # Lightning's advice, and what torch deprecates
def test_lightning_trains_on_other_views_each_epoch(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning", reason="comes with the extra dev")
    data = TransformedDataset(Pairs(), "noise(0.1)", seed=3)

    class NextEpoch(lightning.Callback):
        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            data.set_epoch(trainer.current_epoch)

    module = Small.make(lightning)
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[NextEpoch()],
        default_root_dir=str(tmp_path),
    )  # fmt: skip
    trainer.fit(module, DataLoader(data, batch_size=8))
    first, second = module.seen
    assert not torch.equal(first, second)
    data.set_epoch(1)
    assert torch.equal(second, torch.stack([image for image, _ in data]))  # the same views again
