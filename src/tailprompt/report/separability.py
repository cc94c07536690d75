"""How well features separate classes: distances within and between classes, and K-NN (LPT, section 3.2).

The statistics are `inner/mean` and `inner/sd` over classes, `inter`, `gamma` and `knn/K`. The paper does not
say which split, layer or K it takes. Here R, D and gamma are of test examples, and the gallery of K-NN is the
training examples. Both use the input of the classifier, which is not normalised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

KNN = "knn/"


def centres(vectors: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """The mean vector of each class: `[examples, width]` -> `[classes, width]`; NaN for an empty class."""
    means = np.full((classes, vectors.shape[1]), np.nan)
    for c in np.unique(labels):
        means[c] = vectors[labels == c].mean(axis=0, dtype=float)
    return means


def inner(vectors: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """R_i, the mean Euclidean distance of examples from the centre of their class, `[classes]` (LPT, 3.2)."""
    away = np.linalg.norm(vectors - centres(vectors, labels, classes)[labels], axis=1)
    sizes = np.bincount(labels, minlength=classes)
    total = np.bincount(labels, weights=away, minlength=classes)
    return np.divide(total, sizes, out=np.full(classes, np.nan), where=sizes > 0)


def inter(vectors: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """The Euclidean distance between every two class centres, `[classes, classes]`; its mean is LPT's D."""
    from scipy.spatial.distance import cdist  # slow to import, and most tables measure no distances

    middle = centres(vectors, labels, classes)
    return cdist(middle, middle)


def distances(within: np.ndarray, between: np.ndarray, taken: np.ndarray) -> dict[str, np.ndarray]:
    """`inner/mean`, `inner/sd`, `inter` and `gamma` for each weighting `taken` of the classes, `[draws]`.

    taken: `[draws, classes]`. gamma = 1 / (C D) * sum_i R_i (LPT, section 3.2). The weight of a pair is the
    product of the weights of its classes.
    """
    kept = ~np.isnan(within)
    taken, within, between = taken[:, kept].astype(float), within[kept], between[np.ix_(kept, kept)]
    total = taken.sum(axis=1)
    mean = taken @ within / total
    variance = (taken @ within**2 / total - mean**2).clip(0) * total / (total - 1).clip(1)
    pairs = total**2 - (taken**2).sum(axis=1)
    apart = np.divide(
        ((taken @ between) * taken).sum(axis=1), pairs, out=np.full(len(taken), np.nan), where=pairs > 0
    )
    return {"inner/mean": mean, "inner/sd": np.sqrt(variance), "inter": apart, "gamma": mean / apart}


def knn(
    gallery: np.ndarray, labels: np.ndarray, queries: np.ndarray, numbers: Iterable[int]
) -> dict[int, np.ndarray]:
    """K -> the most frequent class of the K nearest gallery vectors by cosine; of equals the lowest id.

    gallery: `[examples, width]`. labels: `[examples]`. queries: `[queries, width]`. A K above the number of
    examples takes all.
    """
    from sklearn.neighbors import NearestNeighbors  # takes a second, and most tables have no K-NN

    wanted = {number: min(number, len(gallery)) for number in numbers}
    search = NearestNeighbors(n_neighbors=max(wanted.values()), metric="cosine", algorithm="brute")
    near = labels[search.fit(gallery).kneighbors(queries, return_distance=False)]
    return {number: majority(near[:, :most]) for number, most in wanted.items()}


def majority(votes: np.ndarray) -> np.ndarray:
    """The most frequent class in each row of `[queries, K]`; of equals the lowest id."""
    votes = np.sort(votes, axis=1)
    best, count, run = votes[:, 0].copy(), np.ones(len(votes), int), np.ones(len(votes), int)
    for before, here in zip(votes.T, votes.T[1:], strict=False):
        run = np.where(here == before, run + 1, 1)
        best, count = np.where(run > count, here, best), np.maximum(run, count)
    return best


def statistics(
    names: Sequence[str],
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    examples: np.ndarray,
    classes: np.ndarray,
) -> dict[str, np.ndarray]:
    """Each statistic in every draw, `[draws]`. K-NN accuracies are in [0, 1].

    train, test: vectors `[n, width]` with labels `[n]`. examples: how often each draw takes each test
    example, for K-NN. classes: how often each draw takes each class, for distances.
    """
    vectors, labels = test
    numbers = [int(name.removeprefix(KNN)) for name in names if name.startswith(KNN)]
    nearest = knn(*train, vectors, numbers) if numbers else {}
    within = between = None
    if len(numbers) < len(names):
        size = classes.shape[1]
        within, between = inner(vectors, labels, size), inter(vectors, labels, size)
    return drawn(names, nearest, labels, within, between, examples, classes)


def drawn(
    names: Sequence[str],
    nearest: dict[int, np.ndarray],
    labels: np.ndarray,
    within: np.ndarray | None,
    between: np.ndarray | None,
    examples: np.ndarray,
    classes: np.ndarray,
) -> dict[str, np.ndarray]:
    """The same from what was measured: the neighbours' classes by K, and distances if they are named."""
    values = {
        f"{KNN}{number}": examples @ (guesses == labels) / examples.sum(axis=1)
        for number, guesses in nearest.items()
    }
    if within is not None:
        values |= distances(within, between, classes)
    return {name: values[name] for name in names}
