"""The paper's Table 1: no augmentation, traditional augmentation and augmented features.

    python benchmarks/table1.py [--quick] [--device cuda] [--trials 10] [--data FOLDER] [--out FILE]
    python benchmarks/table1.py --device cuda --part speed     full MNIST, a breakdown by stage
    python benchmarks/table1.py --device cuda --part best      the least error within 6 s of fitting

All ways get the same Fourier features, bandwidth, solver and stopping, and are timed from arrays
in host memory, up to the end of training and up to predictions. Traditional augmentation
transforms every image (16 random angles, 36 for the mammograms) and solves the exact objective over
all versions in closed form, in blocks as large as those of the others. Beside them: scikit-learn's
RBFSampler and RidgeClassifier on the same explicitly transformed images, with the penalty that our
baseline chose.

The last line is of the first data set: how many times faster augmented features train than
traditional augmentation, as the paper counts, and how many times if predictions of the test images
are counted too; and how many points of accuracy they are above it. The averaged gap is to
traditional augmentation that averages its predictions' features too, as our way does. Tangent is
augmented features with the variance along each orbit's leading direction as a penalty.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import _table1_fast as fast
import numpy as np
import torch
from _networks import RESULTS, environment, save
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifier

from augury._base.devices import resolve_device
from augury._base.rng import Rng
from augury.augmentations import parse
from augury.kernel.solvers import available_bytes
from augury_paper.cells import Bench, Images
from augury_paper.images import Library, default_folder
from augury_paper.settings import PAPER, Settings
from augury_paper.table1.closed import by_closed_form
from augury_paper.table1.descent import choose_gamma
from augury_paper.table1.tasks import TASKS, WAYS, Task, now, turned

QUICK = replace(PAPER, trials=2, features=2000, examples=2000, tests=2000)
QUICKER = replace(QUICK, features=600, examples=600, tests=1000, versions=8)
"""For the data sets of larger images, in the quick form: so that all is done in a minute."""

CPU_EXAMPLES = 10_000


def main() -> None:
    options = read_options()
    device = resolve_device(options.device)
    settings = QUICK if options.quick else PAPER
    chosen = {"trials": options.trials, "features": options.features, "examples": options.examples}
    settings = replace(settings, **{k: v for k, v in chosen.items() if v is not None})
    if device.type == "cpu" and not options.quick and options.examples is None:
        settings = replace(settings, examples=CPU_EXAMPLES)
    settings = replace(settings, datasets=tuple(options.datasets.split(",")))
    library = Library(Path(options.data).expanduser(), settings)
    result: dict[str, Any] = {"environment": environment(device), "settings": asdict(settings)}
    if options.part != "table":
        part = fast.speed if options.part == "speed" else fast.best
        result[options.part] = part(library.images("mnist"), device, options.features)
        report(result, options.out, f"table1_{options.part}.json")
        return
    bench = Bench(device, library.images, lambda share, words: None)
    result["table"] = {}
    for name in settings.datasets:
        if reason := library.missing(name):
            print(reason)
            continue
        if options.quick and name != "mnist":
            small = replace(QUICKER, trials=settings.trials)
            bench = replace(bench, images=Library(library.folder, small).images)
        else:
            small = settings
        result["table"][name] = measure(bench, name, small, sklearn=not options.no_sklearn)
    report(result, options.out, "table1_quick.json" if options.quick else "table1.json")
    print(last_line(result["table"]))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("table", "speed", "best"), default="table")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--features", type=int)
    parser.add_argument("--examples", type=int, help="training images, 0 for all")
    parser.add_argument("--datasets", default=",".join(TASKS))
    parser.add_argument("--data", default=str(default_folder()), help="the folder with the images")
    parser.add_argument("--no-sklearn", action="store_true", help="leave scikit-learn's pair out")
    parser.add_argument("--quick", action="store_true", help="a small form, in under a minute")
    parser.add_argument("--out", help="where to write the JSON")
    return parser.parse_args()


def measure(bench: Bench, name: str, settings: Settings, *, sklearn: bool) -> dict[str, Any]:
    """Measure every way on one data set, and print a line for each.

    The ways take turns, trial by trial, so that a machine that slows down does so for all; those
    that take many gigabytes come last, since what they give back is taken anew in the next one's
    time.
    """
    images, task = bench.images(name), TASKS[name]
    print(f"{name}: {len(images.train):,} training images, {settings.features:,} features")
    found: dict[str, Any] = {}
    for trial in range(settings.trials):
        for way in sorted(WAYS, key=lambda way: way == "traditional"):
            add(found, way, by_closed_form(bench, name, way, settings, [trial]))
        if sklearn and bench.device.type == "cpu":
            ridge = found["traditional"]["ridge"][trial]
            add(found, "scikit-learn", sklearn_pair(images, task, settings, trial, ridge))
    for way in (*WAYS, "scikit-learn"):
        if way in found:
            show(way, found[way])
    return found


def add(found: dict[str, Any], way: str, part: dict[str, Any]) -> None:
    """Append a trial to those before it."""
    for key, value in part.items():
        if isinstance(value, list):
            found.setdefault(way, {}).setdefault(key, []).extend(value)
        else:
            found.setdefault(way, {})[key] = value


def sklearn_pair(
    images: Images, task: Task, settings: Settings, trial: int, ridge: float
) -> dict[str, Any]:
    """Fit scikit-learn's own features and ridge classifier to all versions of all images."""
    train, test = images.train, turned(images.test, task.turn)
    n = task.versions(settings)
    need = 4 * len(train) * n * (settings.features + 2 * train.x[0].numel())
    if need > 0.7 * available_bytes(torch.device("cpu")):
        return {"note": f"not run: its features would take {need / 2**30:.0f} GiB"}
    gamma, cpu = choose_gamma(train), torch.device("cpu")
    started = now(cpu)
    every = torch.arange(len(train))
    x = train.batch(every, cpu, torch.float32)
    versions = parse(task.augmentation).views(x, n, Rng(trial, every))
    sampler = RBFSampler(gamma=gamma, n_components=settings.features, random_state=trial)
    features = sampler.fit_transform(versions.flatten(0, 1).flatten(1).numpy())
    model = RidgeClassifier(alpha=ridge * len(features), copy_X=False)
    model.fit(features, np.tile(train.y.numpy(), n))
    training = now(cpu) - started
    new = test.batch(torch.arange(len(test)), cpu, torch.float32).flatten(1).numpy()
    right = model.predict(sampler.transform(new)) == test.y.numpy()
    seconds = now(cpu) - started
    return {
        "accuracy": [float(right.mean())],
        "seconds": [seconds],
        "training_seconds": [training],
    }


def show(way: str, found: dict[str, Any]) -> None:
    if "note" in found:
        print(f"  {way:14} {found['note']}")
        return
    accuracy = [100 * value for value in found["accuracy"]]
    spread = statistics.stdev(accuracy) if len(accuracy) > 1 else 0.0
    training, seconds = (statistics.median(found[key]) for key in ("training_seconds", "seconds"))
    also = ""
    if "averaged" in found:
        also = f"; {100 * statistics.fmean(found['averaged']):.2f} % if it averaged at prediction"
    print(
        f"  {way:14} {statistics.fmean(accuracy):6.2f} ± {spread:.2f} %  "
        f"{training:8.3f} s training, {seconds:8.3f} s with prediction{also}"
    )
    sys.stdout.flush()


def last_line(table: dict[str, Any]) -> str:
    """Sum up the first data set: ratios of times, and differences of accuracy in points."""
    if not table:
        return "nothing was measured: no data"
    found = next(iter(table.values()))
    ran = [way for way, part in found.items() if "note" not in part]
    mean = {way: 100 * statistics.fmean(found[way]["accuracy"]) for way in ran}
    averaged = 100 * statistics.fmean(found["traditional"]["averaged"])

    def times(slower: str, faster: str, key: str = "training_seconds") -> float:
        return statistics.median(found[slower][key]) / statistics.median(found[faster][key])

    words = [
        f"speedup={times('traditional', 'augmented'):.1f}",
        f"speedup_with_prediction={times('traditional', 'augmented', 'seconds'):.1f}",
        f"accuracy_gap={mean['augmented'] - mean['traditional']:+.2f}",
        f"averaged_gap={mean['augmented'] - averaged:+.2f}",
        f"accuracy={mean['augmented']:.2f}",
        f"tangent_speedup={times('traditional', 'tangent'):.1f}",
        f"tangent_speedup_with_prediction={times('traditional', 'tangent', 'seconds'):.1f}",
        f"tangent_gap={mean['tangent'] - mean['traditional']:+.2f}",
        f"tangent_averaged_gap={mean['tangent'] - averaged:+.2f}",
    ]
    if "scikit-learn" in ran:
        words.append(f"sklearn_speedup={times('scikit-learn', 'augmented'):.1f}")
        words.append(f"sklearn_gap={mean['augmented'] - mean['scikit-learn']:+.2f}")
    return " ".join(words)


def report(result: dict[str, Any], out: str | None, name: str) -> None:
    path = Path(out) if out else RESULTS / name
    print(f"wrote {save(path.parent, path.name, result)}")


if __name__ == "__main__":
    main()
