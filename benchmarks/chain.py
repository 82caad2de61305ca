"""Time and memory of a finite chain against its number of states, beside other tools.

    python benchmarks/chain.py [--quick]

The chain: N = side⁵ states on a torus, five augmentations that each move one step along an axis
(ten non-zeros a row, the full spectrum, so the worst case for conjugate gradients) and β = 4. The
states are numbered at random, which is the worst case for the cache; where "in order" is said,
neighbours have near numbers, as an enumeration gives them. Asked for: the stationary law and ten
columns of the kernel, each to 1e-8 in ℓ1. The checks of the input and the search for the reversing
law are part of the time. The torus has a Fourier transform, so the true answer is known at every
size, and the error printed is the true one.

Every measurement runs in a process of its own, so that its peak of memory is its own. PyDTMC wants
an old matplotlib, only for its plots; so it is installed apart, and looked for there as well:

    pip install scikit-network fast-pagerank
    pip install --no-deps --target build/peers PyDTMC
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / "build" / "peers"
AXES, SEED, TOL = 5, 0, 1e-8
BETA, SHARES = 4.0, (2, 1, 2, 1, 2)
STARTS = 1000  # examples, that is states with a restart weight


class Torus(NamedTuple):
    """A shape: its side, along how many axes it moves, and whether it is numbered in order."""

    side: int
    moves: int = AXES
    ordered: bool = False

    @property
    def states(self) -> int:
        return self.side**AXES

    @property
    def rates(self) -> list[float]:
        return [BETA * share / sum(SHARES[: self.moves]) for share in SHARES[: self.moves]]


def build(torus: Torus) -> tuple[list[sp.csr_array], np.ndarray, np.ndarray]:
    """Return the matrices, the restart weights and the number of each point of the grid."""
    rng = np.random.default_rng(SEED)
    side, n = torus.side, torus.states
    number = np.arange(n, dtype=np.int32)
    if not torus.ordered:
        rng.shuffle(number)
    point = np.empty_like(number)
    point[number] = np.arange(n, dtype=np.int32)
    grid = np.arange(n, dtype=np.int32).reshape((side,) * AXES)
    matrices = []
    for axis in range(torus.moves):
        ways = [number[np.roll(grid, step, axis).ravel()][point] for step in (1, -1)]
        to = np.sort(np.stack(ways, axis=1), axis=1)
        rows = np.arange(0, 2 * n + 1, 2, dtype=np.int32)
        matrices.append(sp.csr_array((np.full(2 * n, 0.5), to.ravel(), rows), shape=(n, n)))
    restart = np.zeros(n)
    restart[rng.choice(n, min(STARTS, n // 2), replace=False)] = 1
    return matrices, restart / restart.sum(), number


def true_laws(torus: Torus, number: np.ndarray, restarts: np.ndarray) -> np.ndarray:
    """Return the stationary law for each column of restart weights, by the Fourier transform."""
    side = torus.side
    wave = np.cos(2 * np.pi * np.arange(side) / side)
    total = sum(
        rate * wave.reshape([-1 if a == axis else 1 for a in range(AXES)])
        for axis, rate in enumerate(torus.rates)
    )
    laws = []
    for column in restarts.T:
        spectrum = np.fft.fftn(column[number].reshape((side,) * AXES))
        law = np.empty(side**AXES)
        law[number] = np.fft.ifftn(spectrum / (1 + BETA - total)).real.ravel()
        laws.append(law)
    return np.stack(laws, axis=1)


def case_kernel(torus: Torus) -> dict:
    """The stationary law and ten columns of the kernel."""
    from augury.markov import FiniteChain

    matrices, restart, number = build(torus)
    n = torus.states
    at = np.random.default_rng(SEED + 1).choice(n, 10, replace=False)
    start = time.perf_counter()
    chain = FiniteChain(matrices, torus.rates, restart)
    law = chain.solve(chain.rho, tol=TOL)
    built = time.perf_counter()
    kernel = chain.kernel(tol=TOL)
    unit = np.zeros((n, 10))
    unit[at, np.arange(10)] = 1
    columns = kernel.solve(unit)
    end = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    truth = true_laws(torus, number, np.column_stack([restart, unit]))
    found = np.column_stack([law.x, columns.x / kernel.pi0[:, None]])
    return {
        "states": n,
        "nonzeros": int(chain.A.nnz),
        "seconds": end - start,
        "seconds_stationary": built - start,
        "gib": peak,
        "error": float(np.abs(found - truth).sum(0).max()),
        "bound": max(law.error, columns.error),
        "products": columns.products,
        "method": columns.method,
    }


def _stationary(torus: Torus, solve) -> dict:
    matrices, restart, number = build(torus)
    start = time.perf_counter()
    law = solve(matrices, torus.rates, restart)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    error = np.abs(law - true_laws(torus, number, restart[:, None])[:, 0]).sum()
    return {"states": torus.states, "seconds": seconds, "gib": peak, "error": float(error)}


def _weighted(matrices: list, rates: list[float]) -> sp.csr_matrix:
    return sp.csr_matrix(sum(rate * a for rate, a in zip(rates, matrices, strict=True)))


def case_augury(torus: Torus) -> dict:
    from augury.markov import FiniteChain

    return _stationary(torus, lambda *chain: FiniteChain(*chain).stationary(tol=TOL))


def case_scipy(torus: Torus) -> dict:
    from scipy.sparse.linalg import spsolve

    def solve(matrices, rates, restart):
        system = (1 + BETA) * sp.eye_array(len(restart)) - _weighted(matrices, rates)
        return spsolve(sp.csc_matrix(system.T), restart)

    return _stationary(torus, solve)


def case_scikit_network(torus: Torus) -> dict:
    from sknetwork.ranking import PageRank

    def solve(matrices, rates, restart):
        rank = PageRank(BETA / (1 + BETA), solver="piteration", n_iter=1000, tol=TOL)
        return rank.fit_predict(_weighted(matrices, rates), weights=restart)

    return _stationary(torus, solve)


def case_fast_pagerank(torus: Torus) -> dict:
    from fast_pagerank import pagerank_power

    def solve(matrices, rates, restart):
        ratio = BETA / (1 + BETA)
        return pagerank_power(_weighted(matrices, rates), p=ratio, personalize=restart, tol=TOL)

    return _stationary(torus, solve)


def case_pydtmc(torus: Torus) -> dict:
    sys.path.append(str(PEERS))
    from pydtmc import MarkovChain

    def solve(matrices, rates, restart):
        dense = (_weighted(matrices, rates).toarray() + restart) / (1 + BETA)
        return MarkovChain(dense).stationary_distributions[0]

    return _stationary(torus, solve)


CASES = {name[5:]: function for name, function in globals().items() if name.startswith("case_")}


def run(case: str, torus: Torus, limit: float) -> dict:
    """Run one case in a process of its own; what goes wrong is part of the result."""
    command = [sys.executable, __file__, "--case", case, "--torus", json.dumps(torus)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"states": torus.states, "failed": f"not done after {limit:.0f} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"states": torus.states, "failed": last[:200]}
    return json.loads(done.stdout.splitlines()[-1])


def repeated(case: str, torus: Torus, limit: float, times: int) -> dict:
    """Run a case several times: the median and the best time, the largest error and memory."""
    runs = [run(case, torus, limit) for _ in range(times)]
    good = [r for r in runs if "failed" not in r]
    if not good:
        return runs[0]
    seconds = [r["seconds"] for r in good]
    merged = dict(good[0], seconds=statistics.median(seconds), best=min(seconds), runs=len(good))
    merged.update(gib=max(r["gib"] for r in good), error=max(r["error"] for r in good))
    return merged | {"ordered": torus.ordered}


def show(case: str, result: dict) -> None:
    if "failed" in result:
        print(f"{case:15} {result['states']:>9,} states: {result['failed']}", flush=True)
        return
    entries = f", {result['nonzeros']:>10,} non-zeros" if "nonzeros" in result else ""
    print(
        f"{case:15} {result['states']:>9,} states{entries}: {result['seconds']:8.3f} s (best "
        f"{result['best']:.3f}), {result['gib']:.2f} GiB, error {result['error']:.1e}"
        f"{' in order' if result['ordered'] else ''}",
        flush=True,
    )


def plan(quick: bool) -> list[tuple[str, Torus]]:
    small, large = Torus(4 if quick else 5), Torus(16)
    work = [("kernel", Torus(side)) for side in ((5, 10) if quick else (5, 8, 10, 13))]
    if not quick:
        work += [("kernel", Torus(16, moves)) for moves in (1, 2, 3, 4)]
        work += [("kernel", Torus(side, ordered=True)) for side in (5, 8, 10, 13, 16)]
    work.append(("kernel", large))
    work += [(case, small) for case in ("augury", "scipy", "pydtmc")]
    work += [(case, large) for case in ("augury", "scikit_network", "fast_pagerank")]
    return work if quick else [*work, ("scipy", Torus(8))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer sizes, once each")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--torus", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="folder for the result")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(CASES[options.case](Torus(*options.torus))))
        return
    import torch  # not by the cases, whose memory is measured
    from _result import BUILD, environment, save, version

    # the load before it starts, of others, should be well below 1 for timings to count
    where = environment(torch.device("cpu"), "scikit-network", "fast-pagerank")
    where["versions"]["PyDTMC"] = version("PyDTMC", PEERS)
    results: dict[str, list[dict]] = {}
    for case, torus in plan(options.quick):
        once = options.quick or case in ("pydtmc", "scipy")
        limit = 240 if case == "pydtmc" else 60
        found = repeated(case, torus, limit, 1 if once else 3)
        results.setdefault(case, []).append(found)
        show(case, found)
    top, ours, peer = results["kernel"][-1], results["augury"][0], results["pydtmc"][0]
    ratio = "none" if "failed" in peer else f"{peer['seconds'] / ours['seconds']:.0f}"
    record = {
        "environment": where,
        "beta": BETA,
        "tol": TOL,
        "seed": SEED,
        "pydtmc_ratio": ratio,
        "results": results,
    }
    save(options.out or BUILD, "chain", record)
    print(
        f"states={top['states']} seconds={top.get('best', float('nan')):.2f} "
        f"pydtmc_ratio={ratio} pydtmc_states={ours['states']} nonzeros={top.get('nonzeros', 0)} "
        f"gib={top.get('gib', float('nan')):.2f} error={top.get('error', float('nan')):.1e}"
    )


if __name__ == "__main__":
    main()
