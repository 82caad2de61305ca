"""Which tests judge the mutants of a module."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = {  # for modules whose tests are not in tests/<package>/test_<module>.py alone
    "statistics/base.py": ["statistics/test_base.py", "statistics/test_alignment.py"],
    "statistics/alignment.py": ["statistics/test_base.py", "statistics/test_alignment.py"],
    "statistics/heldout.py": ["statistics/test_base.py", "statistics/test_ridge.py"],
    "statistics/ridge.py": ["statistics/test_base.py", "statistics/test_ridge.py"],
}
FORECASTING = {  # the tests of each module of forecasting, quick ones first
    "verdicts": ["verdicts"],
    "plan": ["plan"],
    "linear": ["linear"],
    "splits": ["splits"],
    "series": ["series_by_hand", "series_trial"],
    "sound": ["sound_trial"],
    "tables": ["tables_by_hand", "boosting"],
    "trends": ["trends_by_hand"],
    "effort": ["effort_by_hand", "effort", "own_network"],
    "baseline": ["forecast_borders", "forecast_by_hand"],
    "forecast": [
        "forecast_borders",
        "forecast_by_hand",
        "forecast",
        "multi_label",
        "few_held_out",
        "benchmark_truth",
    ],
    "trial": ["trial_by_hand", "splits"],
    "rank": ["rank_parts", "rank_by_hand", "rank_choices", "ranking"],
    "gallery": ["rank_by_hand", "rank_choices"],
    "scores/alignment": ["scores"],
    "scores/base": ["scores", "summed_by_hand"],
    "scores/boosting": ["boosting_by_hand", "boosting"],
    "scores/ridge": ["scores"],
    "scores/kernel_ridge": ["scores", "summed_by_hand"],
    "scores/summed": ["summed_by_hand", "scores"],  # tests of clusters cannot run in forks
    "scores/trial": ["trial_score", "own_network"],
    "policy/journal": ["journal"],
    "policy/parts": ["parts", "search_by_hand"],
    "policy/policy": ["policy", "search_by_hand"],
    "policy/chains": ["chains"],
    "policy/trust": ["policy_trust"],
    "policy/effort": ["search_effort", "search_by_hand"],
    "policy/rounds": ["search_rounds", "search_by_hand"],
    "policy/rows": ["policy_rows"],
    "policy/search": ["search_parts", "search_choice", "search_by_hand"],
    "policy/space": ["space"],
    "training/adamw": ["members_by_hand"],
    "training/blocks": ["training", "fused"],
    "training/convolution": ["training", "fused"],
    "training/fused": ["fused"],
    "training/grouped": ["training"],
    "training/kernels": ["fused"],
    "training/layers": ["training"],
    "training/members": ["members_by_hand", "training"],
    "training/own": ["own_by_hand", "recorded", "own_network"],
    "training/recorded": ["recorded"],
    "training/runners": ["runners_by_hand"],
    "training/series": ["training"],
    "training/spectrogram": ["spectrogram"],
    "training/train": ["training"],
}


def tests_of(module: Path) -> list[str]:
    """Return the test files of a module; those of forecasting that are not there are left out."""
    relative = module.relative_to(ROOT / "src" / "augury")
    if relative.parts[0] == "forecasting":
        inner = relative.relative_to("forecasting").with_suffix("")
        names = FORECASTING.get(inner.as_posix(), [inner.parts[0]])
        known = [ROOT / f"tests/forecasting/test_{name}.py" for name in names]
        return [str(path) for path in known if path.exists()]
    named = TESTS.get(str(relative), [f"{relative.parent}/test_{relative.stem}.py"])
    return [str(ROOT / "tests" / path) for path in named]
