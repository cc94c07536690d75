"""Features of several models in the plane that separates the models best (LPT Figures 2 and 5).

The paper's groups are models times two domains, ImageNet and Places-LT. Here they are models times the data
sets of the block, so with a single data set they are the models.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tailprompt.errors import BadInput
from tailprompt.plan.places import MAY_CARRY
from tailprompt.report import records
from tailprompt.report.bootstrap import stream
from tailprompt.report.figures import style


def lda(root: Path, spec: dict) -> Figure:
    """One panel: two discriminants as dots, or histograms of the only discriminant of two groups."""
    reports = records.reports(root, spec)
    groups = vectors(root, spec, reports)
    if len(groups) > len(style.LINES):
        raise BadInput(f"figure {spec['name']}: at most {len(style.LINES)} groups can be told apart")
    figure, (axes,) = style.panels(1, 1, 3.2)
    if len(groups) < 2:
        style.empty(axes, "feature vectors are not in bundles" if without(root, spec) else "not run")
        return figure
    projected = discriminants(groups)
    (dots if projected[next(iter(groups))].shape[1] > 1 else histograms)(axes, projected, spec)
    style.legend(figure)
    return figure


def vectors(root: Path, spec: dict, reports: dict) -> dict[str, np.ndarray]:
    """Title of a group -> features of the test examples, of each method's first run on each data set."""
    runs = records.runs(root, spec)
    first = runs[runs.there].drop_duplicates(["dataset", "method"])
    titles = {method["name"]: style.title(method["title"]) for method in spec["methods"]}
    where = {
        name: f" on {style.title(report['title'])}" if reports.keys() - {name} else ""
        for name, report in reports.items()
    }
    return {
        titles[run.method] + where[run.dataset]: records.vectors(run.folder)["test"][0]
        for run in first.itertuples()
        if not (run.folder / MAY_CARRY).is_file()
    }


def without(root: Path, spec: dict) -> bool:
    """Whether some of the runs came from a bundle, in which the vectors of all examples do not travel."""
    runs = records.runs(root, spec)
    return any((folder / MAY_CARRY).is_file() for folder in runs[runs.there].folder)


def discriminants(groups: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The vectors of each group projected on the first two discriminants, `[examples, 1 or 2]`."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # slow; only this figure needs it

    labels = np.repeat(np.arange(len(groups)), [len(values) for values in groups.values()])
    analysis = LinearDiscriminantAnalysis(n_components=min(2, len(groups) - 1))
    placed = analysis.fit_transform(np.concatenate(list(groups.values())), labels)
    return {name: placed[labels == number] for number, name in enumerate(groups)}


def dots(axes: Axes, groups: dict[str, np.ndarray], spec: dict) -> None:
    """Some examples of each group, drawn at random."""
    for look, (name, values) in zip(style.LINES, groups.items(), strict=False):
        some = stream(spec["name"], name).permutation(len(values))[: spec.get("points", 300)]
        axes.plot(*values[some].T, look["marker"], color=look["color"], ms=2.5, alpha=0.5, mew=0, label=name)
    axes.set_xlabel("first discriminant")
    axes.set_ylabel("second discriminant")


def histograms(axes: Axes, groups: dict[str, np.ndarray], spec: dict) -> None:
    """All examples of two groups, which have only one discriminant."""
    for look, (name, values) in zip(style.LINES, groups.items(), strict=False):
        line = {"color": look["color"], "linestyle": (0, look["dashes"] or None), "linewidth": 1.2}
        axes.hist(values[:, 0], 40, density=True, histtype="step", label=name, **line)
    axes.set_xlabel("the discriminant of the two")
    axes.set_ylabel("density of examples")
