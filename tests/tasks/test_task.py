"""A task is all that later stages know: one that is registered goes from predictions to tables by itself.

Tagging stands for the next ones. Its label is a list of tags (- or the name of a type; neighbours of one type
are an entity), and what an example adds is its entities by type.
"""

import json

import numpy as np
import pandas as pd
import pytest
from blocks import block
from scipy.sparse import csr_array

from tailprompt import predict, score
from tailprompt.errors import BadInput
from tailprompt.report.tables.claims import claims
from tailprompt.report.tables.scores import scores
from tailprompt.tasks import metrics
from tailprompt.tasks.classification import CLASSIFICATION, divide
from tailprompt.tasks.registry import TASKS, recorded, told
from tailprompt.tasks.task import Given, Task, once, value, watched

TYPES = ["place", "person"]
TAGS = ["-", *TYPES]


def entities(tags):
    """(type, first, last + 1) of each run of one type."""
    starts = [place for place, tag in enumerate(tags) if place == 0 or tags[place - 1] != tag]
    ends = [*starts[1:], len(tags)]
    return {(tags[a], a, b) for a, b in zip(starts, ends, strict=True) if tags[a] != "-"}


def counted(found, types):
    """Entities by type of each example, sparse `[examples, types]`."""
    numbers = [[sum(kind == name for kind, *_ in one) for name in types] for one in found]
    return csr_array(np.array(numbers, np.float32))


def added(rows, report):
    gold, guesses = ([entities(list(tags)) for tags in rows[name]] for name in ("tags", "prediction"))
    both = [right & guess for right, guess in zip(gold, guesses, strict=True)]
    kinds = {"right": both, "predicted": guesses, "gold": gold}
    return {name: counted(found, report["classes"]) for name, found in kinds.items()}


def entity_score(metric, summed):
    """Micro averages over the entities of all types, as CoNLL's."""
    right, guesses, gold = (summed[name].sum(-1) for name in ("right", "predicted", "gold"))
    below = {"f1": (guesses + gold) / 2, "precision": guesses, "recall": gold}[metric]
    return divide(right, below, empty=np.nan)


def predicted(logits, given):
    """Logits `[examples, tokens, tags]`; tokens whose label is negative are none."""
    pairs = list(zip(logits.argmax(-1), given.labels, strict=True))
    names = {"tags": [gold for _, gold in pairs], "prediction": [best for best, _ in pairs]}
    kept = [gold >= 0 for _, gold in pairs]
    return {
        name: [[TAGS[tag] for tag in tags[mask]] for tags, mask in zip(found, kept, strict=True)]
        for name, found in names.items()
    }


TAGGING = Task(
    told_by="tags",
    gold="tags",
    metrics=("precision", "recall", "f1"),
    watched=lambda report: ("f1",),
    shown_as=("tags",),
    reads=lambda report: (["tags", "prediction"], []),
    added=added,
    score=entity_score,
    predicted=predicted,
    row=predicted,
    shown=lambda logits, given, rows, classes: {
        "tags": [" ".join(TAGS[t] for t in one) for one in logits.argmax(-1)]
    },
)


@pytest.fixture
def tagging(monkeypatch):
    monkeypatch.setitem(TASKS, "tagging", TAGGING)
    monkeypatch.setattr("tailprompt.report.bootstrap.DRAWS", 200)


def sentences(split):
    """Ids and tags of 60 sentences of six words."""
    random = np.random.default_rng([7, len(split)])
    tags = [list(random.choice(TAGS, 6, p=[0.6, 0.25, 0.15])) for _ in range(60)]
    return pd.DataFrame({"id": [f"{split}-{n}" for n in range(60)], "split": split, "tags": tags})


def tagged(root):
    """Data and runs of two methods, of which `prompt` is right more often; returns the root."""
    table = pd.concat([sentences("dev"), sentences("test")], ignore_index=True)
    groups = {"head": [0], "tail": [1], "many": [0], "medium": [], "few": [1]}
    report = {"dataset": "made", "task": told(table), "title": "Made", "classes": TYPES, "reported": None}
    report |= {"rows": {"train": 9, "dev": 60, "test": 60}, "counts": {"train": [6, 3], "test": [6, 3]}}
    (root / "data").mkdir()
    table.to_parquet(root / "data/made.parquet", index=False)
    about = report | {"groups": {"dev": groups, "test": groups}}
    (root / "data/made.json").write_text(json.dumps(about), "utf-8")
    for method, skill in (("cls-tanh", 0.5), ("prompt", 0.95)):
        for seed in (1, 2, 3):
            random = np.random.default_rng([seed, int(100 * skill)])
            noisy = [
                [tag if random.random() < skill else str(random.choice(TAGS)) for tag in one]
                for one in table["tags"]
            ]
            folder = root / f"runs/glee/mini/made/{method}/{seed}"
            folder.mkdir(parents=True)
            table.assign(prediction=noisy).to_parquet(folder / "predictions.parquet", index=False)
            (folder / "run.json").write_text(json.dumps({"device": "cpu"}), "utf-8")
    return root


def test_tagging_goes_from_predictions_to_scores_tables_and_claims(tagging, tmp_path):
    root = tagged(tmp_path)
    folder = root / "runs/glee/mini/made/prompt/1"
    written = score.scores_of(folder, root / "data/made.json").query("split == 'test'")
    groups = ["all", "head", "tail", "many", "medium", "few", "class:place", "class:person"]
    assert [*written[written.metric == "f1"].group] == groups and set(written.metric) == set(TAGGING.metrics)
    rows = pd.read_parquet(folder / "predictions.parquet").query("split == 'test'")
    gold, guesses = ([entities(list(tags)) for tags in rows[name]] for name in ("tags", "prediction"))
    right = sum(len(a & b) for a, b in zip(gold, guesses, strict=True))
    f1 = 2 * right / (sum(map(len, gold)) + sum(map(len, guesses)))
    assert written.set_index(["metric", "group"]).value["f1", "all"] == pytest.approx(f1)

    spec = block("scores", metrics=["f1/all", "f1/tail", "recall/class:person"], winner="f1/all")
    long, tex, _ = scores(root, spec)
    line = long.set_index(["method", "metric"]).loc[("prompt", "f1/all")]
    assert line.low < line.gain < line.high and line.p < 0.05
    assert tex.notes[0].startswith("Prompt-tuning wins on Made: f1/all")

    claim = {"id": "tail", "says": "It tags better", "section": "4", "method": "prompt", "than": "cls-tanh"}
    claim |= {"metric": "f1/tail", "direction": "greater", "datasets": ["made"]}
    long, _, _ = claims(root, block("claims", claims=[claim]))
    assert long.set_index("dataset").verdict["all"] == "holds"


def test_labels_that_are_lists_are_compared_with_the_datas(tagging, tmp_path):
    root = tagged(tmp_path)
    folder = root / "runs/glee/mini/made/prompt/1"
    table = pd.read_parquet(folder / "predictions.parquet")
    table["tags"] = [
        ["-"] * 6 if name == "dev-3" else tags for name, tags in zip(table.id, table.tags, strict=True)
    ]
    table.to_parquet(folder / "predictions.parquet", index=False)
    with pytest.raises(BadInput, match="the label of dev id 'dev-3' differs"):
        score.score_run(folder, root / "data/made.json")


def test_a_metric_that_a_task_lacks_is_refused_with_those_it_has(tagging, tmp_path):
    with pytest.raises(BadInput, match="'accuracy/all': before / comes one of f1, precision, recall"):
        scores(tagged(tmp_path), block("scores", metrics=["accuracy/all"]))


def test_training_watches_what_the_task_says_and_tokens_without_a_label_are_none():
    labels = np.array([[1, 1, -100], [0, 2, 2]])
    logits = np.eye(3)[[[1, 1, 2], [0, 2, 0]]]
    found = watched(TAGGING, logits, Given(labels, ()), {"classes": TYPES})
    assert found == {"f1": 0.5}  # one of two gold, one of two predicted


def test_predict_writes_what_the_task_shows():
    table = pd.DataFrame({"text": ["a b c"]})
    applied = [(table, torch_like(np.eye(3)[[[0, 1, 2]]]), Given(np.zeros((1, 3)), ["a"]))]
    made = predict.with_predictions(TAGGING, table, applied, TYPES)
    assert made.to_dict("list") == {"text": ["a b c"], "tags": ["- place person"]}


def torch_like(values):
    torch = pytest.importorskip("torch")
    return torch.tensor(values)


def test_the_tables_columns_tell_the_task_and_records_before_tasks_had_names_are_read():
    assert told(["id", "label", "text", "choices"]) == "choice"
    assert told(["id", "label", "image"]) == "classification"
    with pytest.raises(BadInput, match="are of no task; one has a column .*choices.* label.* tags"):
        told(["id", "text"])
    assert recorded({"task": "choice"}) is recorded({"choices": True}) is TASKS["choice"]
    assert recorded({"choices": False}) is recorded({}) is CLASSIFICATION
    with pytest.raises(BadInput, match="unknown task 'tags'; known: choice, .*tagging"):
        recorded({"task": "tags"})


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_what_a_task_says_of_itself_agrees(task):
    assert set(task.watched({"classes": [], "roles": True})) <= set(task.metrics) <= set(metrics.METRICS)
    if task.unit == "span":  # its logits are of tokens in passages: test_answers has some
        return
    question = pd.DataFrame({"group": ["q"] * 3, "option": list("xyz"), "answers": [["y"]] * 3})
    labels = np.array([[1, 2, -100]]) if task.unit == "token" else np.arange(3)
    right = np.eye(3, dtype=np.float32)[np.maximum(labels, 0)], Given(labels, (), question)
    row, (columns, _) = task.row(*right), task.reads({})
    assert {task.gold} <= {*columns} <= task.predicted(*right).keys() <= row.keys()
    summed = once(task.added(pd.DataFrame(row), {"classes": "abc"}))
    assert all(value(task, f"{metric}/all", summed, {}) == 1 for metric in task.metrics)


def test_a_title_is_a_groups_or_a_classs_and_a_metrics():
    said = {
        "f1/all": "F1",
        "f1/tail": "Tail F1",
        "accuracy/few": "Few accuracy",
        "average_precision/rarest": "Average precision of the rarest class",
        "recall/class:x y": "Recall of x y",
    }
    assert {name: metrics.title(name) for name in said} == said
