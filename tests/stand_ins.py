"""A copy of the project whose stages are stand-ins: they take a moment, and write what they were asked.

What one writes differs each time where it would not be known beforehand (weights, checkpoints), and is a
function of what is read elsewhere. The imports of a stage stay, as Snakemake is told of their files.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

from project import copied

from tailprompt.plan.made import SAID

SCALE = """
make: {glee: {tables: [table2, claims], figures: [figure4]}}
data_dir: own
corpora: {text: corpus.txt}
datasets:
  toy: {verbalizer: tests/words.csv, title: Toy}
  filed:
    title: Filed
    language: en
    files: {all: {url: "https://example.org/rows.csv"}}
    columns: {text: sentence, label: topic}
    template: "{text} It was {mask} ."
    max_length: 32
  judged:
    title: Judged
    language: en
    loader: pseudo_label
    corpus: text
    scripts: latin
    examples: 10000
    annotator: model
    model: {folder: judge}
    verbalizer: tests/words.csv
    template: "{text} . {mask} ."
    max_length: 32
  other:
    title: Other
    language: zh
    path: tests/other.csv
    columns: {text: sentence, label: topic}
    template: "{text} It was {mask} ."
    max_length: 32
sets: {long_tailed: [toy, filed, judged, other]}
backbones:
  tiny: {family: bert, path: own/tiny, random: {hidden_size: 16, num_hidden_layers: 1}}
  grown: {family: bert, recipe: grown}
pretraining:
  grown:
    task: masked_language_model
    corpus: text
    scripts: all
    held_out: 0.01
    vocabulary: {kind: wordpiece, size: 300, alphabet: 50}
    positions: 64
    shape:
      num_hidden_layers: 1
      hidden_size: 16
      num_attention_heads: 2
      intermediate_size: 16
      max_position_embeddings: 64
    rate: 0.2
    length: 32
    batch: 4
    steps: 10
    lr: 2.0e-3
    warmup: 5
    weight_decay: 0.01
    clip: 1.0
    precision: float32
    evaluate_every: 10
    held_out_rows: 4
    seed: 1
    card: {data: made up, licences: none, measured: nothing, seen: nothing, limits: all}
methods:
  cls-tanh: {eta: 1.5}
  prompt: {eta: 1.5, keep: true}
  prompt-focal: {start: {method: prompt}}
papers:
  glee:
    tables:
      table2: {methods: [cls-tanh, prompt, prompt-focal]}
    figures: {figure4: {methods: [cls-tanh], sets: shown}}
protocols:
  glee: {seeds: [775], backbones: {zh: grown, en: tiny}, methods: [cls-tanh, prompt, prompt-focal]}
"""
WORDS = "label,words\nmusic,song\nsport,match\nfood,bread\nlaw,court\n"
OPTIONS = """
import hashlib, json, sys, time
from pathlib import Path

from tailprompt.files import json_option
from tailprompt.seals import seal

options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
sha = lambda file: hashlib.sha256(Path(file).read_bytes()).hexdigest()
new = lambda file: Path(file).write_text(str(time.time_ns()))
"""
STAGES = {
    "prepare": f"""
SAID = {SAID!r}
"""
    + """
from tailprompt.data.places import places
from tailprompt.plan.places import WHERE

row, out = json_option(options["--dataset"], "--dataset"), Path(options["--out"])
entries = row.get("files") or ({"all": row["path"]} if "path" in row else {})
entries = [{"path": entry} if isinstance(entry, str) else entry for entry in entries.values()]
around = [places(row, entry, options["--data-dir"]) for entry in entries]
found = [next((str(path) for path in paths if path.is_file()), None) for paths in around]
if None in found:
    sys.exit("a file of the data set is not there")
read = {key: value for key, value in row.items() if key not in (*SAID, *WHERE, "asked")}
words = Path(row["verbalizer"]).read_text().split() if "verbalizer" in row else []
labels = [line.split(",")[0] for line in words]
out.write_text(json.dumps([read, list(map(sha, found)), labels]))
digests = {"sha256": sha(out), "rows_sha256": f"rows of {sha(out)}"}
out.with_suffix(".json").write_text(json.dumps({"row": row, "classes": [], **digests}))
seal(out.with_suffix(".json"))
""",
    "annotate": """
row = json_option(options["--dataset"], "--dataset")
read = [sha(row["path"]), sha(row["model"]["folder"] + "/config.json"), row["examples"]]
Path(options["--out"]).write_text(json.dumps(read))
""",
    "backbones": """
row, out = json_option(options["--row"], "--row"), Path(options["--out"])
out.write_text(json.dumps({**row, "seen": sha(row["path"] + "/model.safetensors")}))
seal(out)
""",
    "vocabulary": """
about = json.dumps([json_option(options["--recipe"], "--recipe"), sha(options["--corpus"])])
for name in ("tokenizer.json", "tokenizer_config.json"):
    file = Path(options["--out"], name)
    file.write_text(about)
    seal(file)
""",
    "pack": """
words = sha(options["--tokenizer"] + "/tokenizer.json")
about = [json_option(options["--recipe"], "--recipe"), sha(options["--data"]), words]
out = Path(options["--out"])
out.mkdir(exist_ok=True)
for name in ("train.bin", "pack.json"):
    (out / name).write_text(json.dumps({"made": about}))
    seal(out / name)
""",
    "pretrain": """
out = Path(options["--out"])
for name in ("model.safetensors", "config.json", "tokenizer.json", "curve.csv"):
    new(out / name)
recipe, packed = json_option(options["--recipe"], "--recipe"), sha(options["--packed"] + "/pack.json")
about = {"recipe": recipe, "packed": packed, "sha256": sha(out / "model.safetensors")}
about["files"] = {name: sha(out / name) for name in ("config.json", "tokenizer.json")}
(out / "pretraining.json").write_text(json.dumps(about))
""",
    "train": """
from tailprompt.plan.agreement import data_digests
from tailprompt.plan.asked_file import read_asked

root, point = Path(options["--root"]), options["--point"]
protocol, backbone, dataset, *_ = point.split("/")
folder, data = root / "runs" / point, root / "data" / f"{dataset}.parquet"
for name in ("weights.safetensors", "predictions.parquet", "features.parquet", "curve.csv"):
    new(folder / name)
about = {**read_asked(Path(options["--asked"])), "data": data_digests(data), "seconds": 1.0}
row = json.loads((root / "backbones" / f"{backbone}.json").read_text())
about["saw"] = sha(row["path"] + "/model.safetensors")
start = about["start"] and root / "runs" / about["start"]["run"] / "weights.safetensors"
about["start_sha256"] = start and sha(start)
about["weights_sha256"] = sha(folder / "weights.safetensors")
(folder / "run.json").write_text(json.dumps(about))
""",
    "tabulate": """
from tailprompt.report.options import taken

made_of = taken(Path(options["--root"]), options["--spec"])
files = [Path(f'{options["--out"]}.{ending}') for ending in ("tex", "md", "csv", "html")]
for file in files:
    new(file)
seal(*files, also=made_of)
""",
    "draw": """
from tailprompt.report.options import taken

made_of = taken(Path(options["--root"]), options["--spec"])
files = [Path(f'{options["--out"]}.{ending}') for ending in ("pdf", "png", "html")]
for file in files:
    new(file)
seal(*files, also=made_of)
""",
    "overview": """
from tailprompt.report.options import taken

made_of = taken(Path(options["--root"]), options["--spec"])
new(Path(options["--out"]))
seal(Path(options["--out"]), also=made_of)
""",
}
BACKBONE = Path("workflow/resources/backbones/bert-mini")


def made(folder: Path) -> Path:
    """The project, in a folder that is not there; returns it."""
    copied(folder)
    for stage, code in STAGES.items():
        file = folder / f"src/tailprompt/{stage}.py"
        file.write_text(OPTIONS + code + kept(file.read_text()))
    (folder / "matrix.yaml").write_text(SCALE)
    (folder / "tests/words.csv").write_text(WORDS)
    shutil.copy(folder / "tests/toy.csv", folder / "tests/other.csv")
    (folder / "corpus.txt").write_text("A paragraph.\n\nAnother.\n")
    for name, files in {"own/filed": (), "own/tiny": TOKENIZER, "judge": ("config.json",)}.items():
        (folder / name).mkdir(parents=True)
        for file in files:
            shutil.copy(folder / BACKBONE / file, folder / name / file)
    shutil.copy(folder / "tests/toy.csv", folder / "own/filed/rows.csv")
    for name in ("own/tiny", "judge"):
        (folder / name / "model.safetensors").write_text("weights")
    return folder


TOKENIZER = ("config.json", "tokenizer.json", "tokenizer_config.json")


def kept(source: str) -> str:
    """The imports of a stage, in a function that nobody calls."""
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    lines = [ast.unparse(node) for node in nodes if getattr(node, "module", "") != "__future__"]
    return "\n\ndef imported():\n" + "".join(f"    {line}\n" for line in lines)
