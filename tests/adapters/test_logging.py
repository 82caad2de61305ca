"""The three lines of docs/export.md for MLflow, Weights & Biases and TensorBoard."""

from __future__ import annotations

import json

import pytest

import augury
from augury.results.ranking import Ranking

# each library, imported in the real environment, warns of others' deprecations
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def ranking() -> Ranking:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return augury.rank(
        digits.images[:200] / 16,
        digits.target[:200],
        ["rotation(10)", "vertical_flip"],
        score="ridge",
        feature_map="flatten",
    )


def test_mlflow(ranking, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the store that mlflow-skinny has
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        mlflow.log_metrics({"best_gain": ranking.rows[0].gain})
        mlflow.log_text(ranking.to_html(), "ranking.html")
        mlflow.log_text(augury.export("rotation(10)", to="torchvision"), "augment.py")
    kept = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/augment.py")
    assert "v2.RandomRotation" in kept


@pytest.mark.slow
def test_wandb(ranking, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(mode="offline", project="augury", dir=str(tmp_path)) as run:
        table = wandb.Table(dataframe=ranking.to_frame())
        run.log({"ranking": table, "report": wandb.Html(ranking.to_html())})
        run.config["augment"] = augury.export("rotation(10)", to="torchvision")
        folder = run.dir
    files = list((tmp_path / "wandb").rglob("*.table.json"))
    assert folder
    assert len(json.loads(files[0].read_text())["data"]) == 2


def test_tensorboard(ranking, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_text("augury/ranking", ranking.to_markdown())
        writer.add_figure("augury/gains", ranking.plot())
        writer.add_text("augury/augment", augury.export("rotation(10)", to="torchvision"))
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert "augury/gains" in events.Tags()["images"]
    assert len(events.Tags()["tensors"]) == 2
