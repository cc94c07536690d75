"""The first page of a scale's report: what was run, on what and how long, and which claims hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from jinja2 import Environment

from tailprompt.plan.either import run_folder
from tailprompt.plan.points import Point, parse
from tailprompt.report import browse, records
from tailprompt.report.sheet import greek, number
from tailprompt.report.tables.claims_sheet import DECIDED, overall, places, span

VERDICTS = (*DECIDED, "undecided", "not run")
VERSIONS = ("python", "torch", "transformers", "timm")
MINUTE, HOUR = 60, 3600


@dataclass(frozen=True)
class Ran:
    """What was run for a paper. hardware: device -> runs. seconds: of all runs, added up. memory: MB."""

    title: str
    planned: int
    runs: int
    methods: int
    datasets: int
    backbones: list[str]
    seeds: int
    hardware: dict[str, int]
    seconds: float
    memory: float


@dataclass(frozen=True)
class Judged:
    """The claims of a paper: verdict -> number, the sentences that are decided, and its figure."""

    title: str
    counts: dict[str, int]
    decided: dict[str, list[str]]
    picture: str
    caption: str


def overview(root: Path, spec: dict) -> str:
    """The page. spec: what `plan.jobs.shown.overview` returns."""
    kept = {run: records.record(run_folder(root, Point.at(run))) for run in spec["runs"]}
    judged = {paper["title"] for paper in spec["claims"]}
    jinja = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    jinja.filters.update(time=time, listed=", ".join)
    return jinja.from_string(PAGE.lstrip()).render(
        scale=spec["scale"],
        ran=[of_paper(paper, kept) for paper in spec["papers"]],
        judged=[of_claims(root, paper) for paper in spec["claims"]],
        unjudged=[paper["title"] for paper in spec["papers"] if paper["title"] not in judged],
        verdicts=VERDICTS,
        # papers have seeds of their own, so that their number in all is that of no comparison
        total=replace(of_paper({**spec, "title": "All, each run once"}, kept), seeds=0),
        versions=versions(kept.values()),
        enlarge=browse.ENLARGE,
    )


def of_paper(paper: dict, kept: dict[str, dict]) -> Ran:
    """What was run for a paper. kept: run -> the content of its run.json."""
    points = [Point.at(run) for run in paper["runs"]]
    about = [kept[run] for run in paper["runs"]]
    return Ran(
        title=paper["title"],
        planned=paper["planned"],
        runs=len(about),
        methods=len({point.method for point in points}),
        datasets=len({parse(point.dataset)[0] for point in points}),
        backbones=sorted({point.backbone for point in points}),
        seeds=len({point.seed for point in points}),
        hardware=dict(Counter(record["device"] for record in about).most_common()),
        seconds=sum(record["seconds"] for record in about),
        memory=max((record.get("memory_mb") or 0 for record in about), default=0),
    )


def of_claims(root: Path, paper: dict) -> Judged:
    """How the claims of a paper were judged, from the table that `tabulate` wrote."""
    table = overall(root / paper["table"])
    decided = {
        verdict: [sentence(pd.Series(claim)) for claim in table[table.verdict == verdict].to_dict("records")]
        for verdict in DECIDED
        if verdict in {*table.verdict}
    }
    figure = root / paper["figure"] if paper["figure"] else None
    return Judged(
        title=paper["title"],
        counts=table.verdict.value_counts().to_dict(),
        decided=decided,
        picture=browse.embedded(figure.read_bytes()) if figure else "",
        caption=paper["caption"],
    )


def sentence(claim: pd.Series) -> str:
    """What a claim says, with our effect and the printed one."""
    ours = number(claim.ours, places(claim), signed=True)
    reported = number(claim.reported, places(claim), signed=True)
    beside = f", printed {reported}" if reported else ""
    interval = f" ({span(claim)})" if span(claim) else ""
    return f"{greek(claim.says)}: {ours} {claim.unit}{interval}{beside}"


def versions(kept) -> list[str]:
    """The versions of the libraries with which runs were made, all where there are several."""
    found = {
        name: sorted({run["versions"][name] for run in kept if name in run["versions"]}) for name in VERSIONS
    }
    return [f"{name} {' and '.join(each)}" for name, each in found.items() if each]


def time(seconds: float) -> str:
    """A duration for people."""
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:,.1f} h"


# What the style says of .flex and .prose is for the page of Snakemake around this one. It centres what it
# shows, so that the top of a long page would be out of reach, and gives this one half a column beside the
# rule graph; on a phone its menu would take most of the width.
PAGE = """
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>tailprompt at scale {{ scale }}</title>
<style>
.overview { font: 14px/1.5 system-ui, sans-serif; max-width: 68em; margin: 0 auto; padding: 1em; color: #222; background: #fff; }
.overview h1 { font-size: 1.5em; font-weight: bold; margin: 0 0 .4em; }
.overview h2 { font-size: 1.15em; font-weight: bold; margin: 1.6em 0 .4em; border-bottom: 1px solid #ccc; }
.overview .wide { overflow-x: auto; }
.overview table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; margin: .5em 0; width: auto; }
.overview th, .overview td { padding: .2em .6em; text-align: left; vertical-align: top; border-bottom: 1px solid #ddd; }
.overview .r { text-align: right; white-space: nowrap; }
.overview tfoot td { border-top: 2px solid #222; font-weight: bold; }
.overview img { display: block; width: 100%; max-width: 900px; height: auto; margin: .5em 0; cursor: zoom-in; }
.overview img.large { width: 1600px; max-width: none; cursor: zoom-out; }
.overview .note { color: #666; font-size: 12px; }
.h-screen.items-center { align-items: safe center; justify-content: safe center; }
.grow.flex:has(> div > .prose .overview) { flex-wrap: wrap; min-width: 0; }
.grow.flex > div:has(> .prose .overview) { flex: 1 1 40em; min-width: 0; }
.prose:has(.overview) { max-width: none; }
@media (max-width: 40em) {
.overview td:first-child { min-width: 10em; }
.overview .figure { overflow-x: auto; }
.overview .figure::before { content: "\\2194  scroll"; display: inline-block; position: sticky; left: 0; color: #666; }
.overview img { min-width: 40em; }
.flex-row:has(.overview) { flex-direction: column; }
.flex-row:has(.overview) > nav { width: 100%; height: auto; max-height: 30vh; flex: none; }
.flex-row:has(.overview) > nav.w-0 { height: 0; }
}
</style>
<div class="overview">
<h1>tailprompt at scale {{ scale }}</h1>
<p>
{% if total.runs %}
{{ "{:,}".format(total.runs) }} of {{ "{:,}".format(total.planned) }} planned runs are here, of {{ total.methods }}
method{{ "s" if total.methods != 1 }} on {{ total.datasets }} data set{{ "s" if total.datasets != 1 }} with {{ total.backbones | listed }}. They took {{ total.seconds | time }} in all, added up over runs.
{% else %}
None of {{ "{:,}".format(total.planned) }} planned runs is here.
{% endif %}
</p>
<h2>Which claims hold</h2>
{% if judged %}
<div class="wide"><table>
<thead><tr><th>Paper</th>{% for verdict in verdicts %}<th class="r">{{ verdict }}</th>{% endfor %}</tr></thead>
<tbody>
{% for one in judged %}
<tr><td>{{ one.title }}</td>{% for verdict in verdicts %}<td class="r">{{ one.counts.get(verdict, 0) }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table></div>
<p class="note">A claim holds or fails at p &lt; 0.05 after Holm's correction over the paper's claims, else it is undecided, which is
no refutation.{% if unjudged %} This scale judges no claims of: {{ unjudged | join("; ") }}.{% endif %}</p>
{% else %}
<p>This scale judges no claims.</p>
{% endif %}
<h2>What was run</h2>
<div class="wide"><table>
<thead><tr><th>Paper</th><th class="r">runs</th><th class="r">methods</th><th class="r">data sets</th>
<th class="r">seeds</th><th>backbones</th><th>hardware</th><th class="r">time</th><th class="r">memory</th></tr></thead>
{% macro row(one) %}
<tr><td>{{ one.title }}</td><td class="r">{{ "{:,}".format(one.runs) }}{{ " of {:,}".format(one.planned) if one.planned != one.runs }}</td>
<td class="r">{{ one.methods or "" }}</td><td class="r">{{ one.datasets or "" }}</td><td class="r">{{ one.seeds or "" }}</td>
<td>{{ one.backbones | listed }}</td>
<td>{% for device, count in one.hardware.items() %}{{ device }}{% if one.hardware | length > 1 %} ({{ "{:,}".format(count) }}){% endif %}{{ ", " if not loop.last }}{% endfor %}</td>
<td class="r">{{ one.seconds | time if one.runs }}</td><td class="r">{% if one.memory %}{{ "{:,.1f}".format(one.memory / 1000) }} GB{% endif %}</td></tr>
{% endmacro %}
<tbody>
{% for one in ran %}{{ row(one) }}{% endfor %}
</tbody>
<tfoot>{{ row(total) }}</tfoot>
</table></div>
<p class="note">Time is that of all runs added up, though several may have shared a device; memory is the most of a run.
{% if versions %}Made with {{ versions | listed }}.{% endif %}</p>
{% for one in judged %}
<h2>{{ one.title }}</h2>
{% if one.picture %}
<div class="figure"><img src="{{ one.picture }}" alt="{{ one.caption }}" onclick="{{ enlarge }}"></div>
<p class="note">{{ one.caption }}. Intervals are without Holm's correction, verdicts with it. Click on the figure to enlarge it.</p>
{% endif %}
{% for verdict, sentences in one.decided.items() %}
<p><b>{{ verdict | capitalize }}:</b></p>
<ul>
{% for sentence in sentences %}
<li>{{ sentence }}</li>
{% endfor %}
</ul>
{% endfor %}
{% endfor %}
</div>
"""  # noqa: E501
