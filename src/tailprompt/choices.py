"""Write what a search chose as a file of the configuration: cells of a protocol, by data set and method.

python -m tailprompt.choices --table results/<scale>/tables/<paper>/<search>.csv --out FILE.yaml

Give the file to Snakemake as one more --configfile, after that of the scale, or copy it into that.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from tailprompt.errors import BadInput, stage
from tailprompt.files import reading, whole
from tailprompt.plan.points import parse
from tailprompt.seals import seal

READ = ["protocol", "dataset", "method", "run", "best", "score"]


def choices(table: Path, out: Path) -> None:
    """Write the best point of each method and data set of a search; raises BadInput for another table."""
    with reading(table):
        long = pd.read_csv(table)
    if missing := [name for name in READ if name not in long.columns]:
        raise BadInput(f"{table} has no column {missing[0]}; name the .csv of a table of kind search")
    lines = [f"# The best {', '.join(long.score.unique())} on dev, by {table.stem}", *unchosen(long)]
    best = long[long.best]
    lines += ["protocols:"] if len(best) else ["protocols: {}"]
    for protocol, of_protocol in best.groupby("protocol", sort=False):
        lines += [f"  {protocol}:", "    cells:"]
        for dataset, of_dataset in of_protocol.groupby("dataset", sort=False):
            lines += [f"      {parse(dataset)[0]}:"]
            lines += [f"        {parse(one.method)[0]}: {chosen(one)}" for one in of_dataset.itertuples()]
    with whole(out) as temporary:
        temporary.write_text("\n".join(lines) + "\n", "utf-8")
    seal(out)


def unchosen(long: pd.DataFrame) -> list[str]:
    """Comments on what is not chosen yet; a table that needs it waits although it is given this file."""
    best = long.groupby(["dataset", "method"], sort=False).best.any()
    lacking = best[~best].reset_index().groupby("dataset", sort=False).method.agg(", ".join)
    return [f"# Not chosen, as runs are missing, on {name}: {methods}" for name, methods in lacking.items()]


def chosen(one) -> str:
    """The searched keys of a row with their best values, as YAML."""
    fixed, changes = parse(one.method)[1], parse(one.run)[1]
    pairs = [f"{key}: {value_in_yaml(value)}" for key, value in changes.items() if key not in fixed]
    return f"{{{', '.join(pairs)}}}"


def value_in_yaml(value) -> str:
    """A value as YAML 1.1 reads it back, to which 1e-05 is a word and 1.0e-05 a number."""
    text = json.dumps(value)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if e and isinstance(value, float) and "." not in mantissa else text


def main() -> None:
    parser = argparse.ArgumentParser(prog="tailprompt choices", description=__doc__.split("\n")[0])
    parser.add_argument("--table", type=Path, required=True, help=".csv of a table of kind search")
    parser.add_argument("--out", type=Path, required=True, help="the .yaml to write")
    options = parser.parse_args()
    choices(options.table, options.out)


if __name__ == "__main__":
    stage(main)
