"""Lists that README and docs show of the configuration and the code."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import yaml

from docs.fill import Makers, table
from tailprompt.components.declare import every
from tailprompt.components.resolve import documented
from tailprompt.components.run import Run
from tailprompt.plan import blocks, first_budget
from tailprompt.plan.config import load
from tailprompt.report import power
from tailprompt.report.typeset import md_text

EQUATION = re.compile(r"^(?! *#).*# ([A-Z].*\bEqs?\. \d[^\n]*)$")
SLOTS = ("input", "tuner", "head", "loss", "sampler")
OURS = re.compile(r"\b(GLEE|LPT|PPT|P-Tuning)\b")
GROUP = re.compile(r"^  # (.*)$")
HEADING = re.compile(r"(?<!al)[.:] ")
ROW = re.compile(r"^  ([\w-]+): +\{")
MINE = {
    "mine": "texts",
    "mine-choices": "questions with options",
    "mine-images": "images",
    "mine-tags": "tags",
    "mine-passages": "questions about passages",
}
SHIPPED = Path("workflow/resources/backbones")
FORMS = {"bert": "BERT", "t5": "T5 1.1", "vit": "ViT"}
TOKENS, EXAMPLES, PROMPT = 412, 16, 100  # RACE's length, a batch, a prompt
SHAPES = {  # of T5 1.1 and mT5: width, inner width, heads of 64 values, layers
    "Small": (512, 1024, 6, 8),
    "Base": (768, 2048, 12, 12),
    "Large": (1024, 2816, 16, 24),
    "XL": (2048, 5120, 32, 24),
    "XXL": (4096, 10240, 64, 24),
}
VOCABULARY = {"T5": 32128, "mT5": 250112}


def equations() -> str:
    """Each equation, and the lines that compute it."""
    found: dict[str, list[str]] = {}
    for file in sorted(Path("src/tailprompt").rglob("*.py")):
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            if match := EQUATION.match(line):
                name = file.relative_to("src/tailprompt").as_posix()
                found.setdefault(match[1], []).append(f"[{name}:{number}](../{file.as_posix()}#L{number})")
    return table(
        ("equation", "line"), ([name, ", ".join(found[name])] for name in sorted(found, key=natural)), "ll"
    )


def natural(text: str) -> list:
    """A key that sorts numbers in text by size."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def symbols() -> str:
    """Each setting whose meaning names one of the papers."""
    rows = [
        [f"`{row['setting']}`", row["read by"], f"`{row['default']}`", md_text(row["meaning"])]
        for row in documented()
        if OURS.search(row["meaning"])
    ]
    return table(("setting", "read by", "default", "meaning"), rows, "llll")


def components() -> str:
    """What each component of a method is, and where from, as its declaration says."""
    rows = {
        (each.name, name): option.__doc__.strip().splitlines()[0]
        for _, _, each in every(Run)
        if each.name in SLOTS
        for name, option in each.options.items()
    }
    lines = [[slot, f"`{name}`", md_text(says)] for (slot, name), says in sorted(rows.items(), key=slot_of)]
    return table(("part", "component", "what it is"), lines, "lll")


def slot_of(row: tuple) -> int:
    """A key that sorts components by slot."""
    return SLOTS.index(row[0][0])


def methods() -> str:
    """Every row of config/methods.yaml, below the comment that stands above it, and the tables with it."""
    file = Path("config/methods.yaml")
    rows, shown = yaml.safe_load(file.read_text("utf-8"))["methods"], shown_in()
    parts, comment, lines = [], [], []
    for line in file.read_text("utf-8").splitlines():
        if match := GROUP.match(line):
            if lines:
                parts, comment, lines = [*parts, group(comment, lines)], [], []
            comment.append(match[1])
        elif match := ROW.match(line):
            lines.append(described(match[1], rows[match[1]], shown.get(match[1], ())))
    return "\n\n".join([*parts, group(comment, lines)])


def group(comment: list[str], lines: list[list[str]]) -> str:
    """The rows of methods that stand together, under the first words of their comment."""
    heading, *rest = HEADING.split(" ".join(comment), maxsplit=1)
    parts = [f"### {capital(heading).rstrip('.')}", capital("".join(rest))]
    parts += [table(("method", "title", "made of", "in"), lines, "llll")]
    return "\n\n".join(part for part in parts if part)


def capital(text: str) -> str:
    """A sentence with a capital letter."""
    return text[:1].upper() + text[1:]


def described(name: str, row: dict, tables: tuple) -> list[str]:
    """The cells of a method: name, title, what its row says, and the tables that show it."""
    said = {key: value for key, value in row.items() if key != "title"}
    keys = ", ".join(f"{key}: {short(value)}" for key, value in said.items())
    return [f"`{name}`", md_text(row["title"]), md_text(keys), ", ".join(tables)]


def short(value) -> str:
    """A value of a row as it is written there."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False).replace('"', "")


def shown_in() -> dict[str, tuple[str, ...]]:
    """The tables of papers that have a method as a row."""
    found: dict[str, dict[str, None]] = {}
    for file in sorted(Path("config/papers").glob("*.yaml")):
        for paper, spec in yaml.safe_load(file.read_text("utf-8")).get("papers", {}).items():
            for name, block in spec.get("tables", {}).items():
                for method in block.get("methods") or ():
                    base = method.partition("@")[0].partition("/")[0]
                    found.setdefault(base, {})[f"{paper} {name}"] = None
    return {method: tuple(tables) for method, tables in found.items()}


def mine(kind: str = "") -> str:
    """The methods on data of one's own: how many on those of a kind, or which, and their runs a seed."""
    if kind:
        return str(len(own_table(kind)["methods"]))
    lines = []
    for kind, what in MINE.items():
        block = own_table(kind)
        which = ", ".join(f"`{method}`" for method in block["methods"])
        lines.append(
            [f"`config/{kind}.yaml`", what, str(len(block["methods"])), str(runs_a_seed(block)), which]
        )
    return table(("file", "for", "methods", "runs a seed", "which"), lines, "llrrl")


def runs_a_seed(block: dict) -> int:
    """The runs of a table that chooses a rate for each of its methods."""
    rates = block["choose"].get("of", {})
    return sum(len(rates.get(method, block["choose"]["values"])) or 1 for method in block["methods"])


def own_table(kind: str) -> dict:
    """The table that names a winner on one's own data, or that of a first round (`try`)."""
    file, name = ("try", "first") if kind.startswith("try") else ("mine", "table2")
    papers = yaml.safe_load(Path(f"config/papers/{file}.yaml").read_text("utf-8"))["papers"]
    return papers[kind]["tables"][name]


def backbones() -> str:
    """The backbones that ship, as their own records say."""
    heads = ("backbone", "form", "parameters", "weights", "pre-trained by", "cost", "held out")
    return table(heads, map(backbone, sorted(SHIPPED.glob("*/pretraining.json"))), "llrrlll")


def backbone(file: Path) -> list[str]:
    """The cells of a backbone. file: its record."""
    about = json.loads(file.read_text("utf-8"))
    recipe, held_out = about["recipe"], about["held_out"]
    return [
        f"[{about['name']}](../{file.parent.as_posix()}/README.md)",
        FORMS[about["name"].split("-")[0]],
        millions(about),
        f"{(file.parent / 'model.safetensors').stat().st_size / 1e6:.1f} MB",
        f"{recipe['task'].replace('_', ' ')}, {recipe['steps']:,} steps of {recipe['batch']:,}",
        f"{about['seconds']:.0f} s on one {about['device']}",
        f"loss {held_out['held_out_loss']:.3f}, {held_out['held_out_accuracy']:.1%} right",
    ]


def size(name: str) -> str:
    """The number of parameters of a backbone that ships."""
    return millions(json.loads((SHIPPED / name / "pretraining.json").read_text("utf-8")))


def millions(about: dict) -> str:
    """Parameters in millions."""
    return f"{about['parameters'] / 1e6:.1f} M"


def paper_scale() -> str:
    """The runs, data sets and backbones of each protocol that config/paper.yaml plans."""
    config = load()
    points = blocks.all_points(config)
    runs = Counter(point.protocol for point in points)
    rows = []
    for protocol, number in runs.items():
        own = [point for point in points if point.protocol == protocol]
        names = sorted({point.backbone for point in own})
        sizes = sum(config["backbones"][name].get("megabytes", 0) for name in names) / 1000
        rows.append(
            [protocol, f"{number:,}", str(len({p.dataset for p in own})), ", ".join(names), f"{sizes:.1f}"]
        )
    return table(("protocol", "runs", "data sets", "backbones", "weights, GB"), rows, "lrrlr")


def memory() -> str:
    """The memory that T5 and mT5 take, by the formula beside the table."""
    states = ("weights, bfloat16", "weights, float32", "activations, checkpointed", "activations, not")
    heads = ("size", "parameters (10^9)", *states, "full tuning, without activations")
    rows = []
    for family, words in VOCABULARY.items():
        for size, shape in SHAPES.items():
            count = parameters(words, *shape) / 1e9
            kept = activations(*shape, checkpointed=True) / 1e9, activations(*shape, checkpointed=False) / 1e9
            numbers = (2 * count, 4 * count, *kept, 20 * count)
            rows.append([f"{family}-{size}", f"{count:.2f}", *(f"{value:.1f}" for value in numbers)])
    return table(heads, rows, "lrrrrrr")


def parameters(words: int, width: int, inner: int, heads: int, layers: int) -> int:
    """The number of parameters of a T5 1.1: embedding and output apart, gated layers, a bias of positions."""
    attention, dense = 4 * width * 64 * heads, 3 * width * inner
    encoder = layers * (attention + dense + 2 * width)
    decoder = layers * (2 * attention + dense + 3 * width)
    return 2 * words * width + encoder + decoder + 2 * (width + 32 * heads)


def activations(width: int, inner: int, heads: int, layers: int, *, checkpointed: bool) -> int:
    """Bytes that the encoder keeps for the gradient, in two bytes a number."""
    tokens = TOKENS + PROMPT
    shared = 2 * EXAMPLES * heads * tokens**2
    layer = 2 * EXAMPLES * tokens * (4 * width + 4 * heads * 64 + 3 * inner) + shared
    whole = layers * 2 * EXAMPLES * tokens * width + 2 * layer if checkpointed else layers * layer
    return whole + shared


def longest() -> str:
    """How many tokens of a text a first round reads at most."""
    return str(first_budget.LENGTHS[-1])


def most_claims() -> str:
    """How many claims are corrected together in the simulation of docs/statistics.md."""
    return str(power.CLAIMS)


MAKERS: Makers = {
    "equations": equations,
    "symbols": symbols,
    "components": components,
    "methods": methods,
    "mine": mine,
    "backbones": backbones,
    "size": size,
    "paper-scale": paper_scale,
    "memory": memory,
    "most-claims": most_claims,
    "longest": longest,
}
