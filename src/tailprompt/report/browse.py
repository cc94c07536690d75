"""What a reader of an HTML page does with it: search and sort a table, enlarge a figure.

The pages need nothing from elsewhere, so that they work in Snakemake's report, from disk and without network.
"""

from __future__ import annotations

import base64

from jinja2 import Environment

SEARCH = """<p><input type="search" placeholder="search in rows" aria-label="search in rows"> <small id="found"></small></p>
"""  # noqa: E501

TABLE = r"""<script>
const table = document.querySelector("table"), box = document.querySelector("input");
const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
const bodies = [...table.tBodies].map(body => [body, [...body.rows].filter(row => !row.querySelector("th.block"))]);
const text = (row, column) => row.cells[column].textContent.trim();
const number = words => /^[-+\u2212<]?[\d.]/.test(words) ? parseFloat(words.replace("\u2212", "-").replace(/[<,]/g, "")) : NaN;

function compare(column) {
  const filled = bodies.flatMap(([, rows]) => rows).map(row => text(row, column)).filter(Boolean);
  const numbers = filled.every(words => !isNaN(number(words)));
  return (a, b) => numbers ? number(a) - number(b) : a.localeCompare(b);
}

function sort(column) {
  const next = {none: "ascending", ascending: "descending", descending: "none"};
  const way = next[heads[column].getAttribute("aria-sort")], before = compare(column);
  heads.forEach((head, place) => head.setAttribute("aria-sort", place === column ? way : "none"));
  for (const [body, rows] of bodies) {
    const order = way === "none" ? rows : [...rows].sort((a, b) => {
      const [one, other] = [text(a, column), text(b, column)];
      if (!one || !other) return !one - !other;
      return way === "ascending" ? before(one, other) : before(other, one);
    });
    body.append(...order);
  }
}

function search() {
  const wanted = box.value.toLowerCase().split(/\s+/), all = bodies.flatMap(([, rows]) => rows);
  for (const [body, rows] of bodies) {
    for (const row of rows) row.hidden = !wanted.every(word => row.textContent.toLowerCase().includes(word));
    body.hidden = rows.every(row => row.hidden);
  }
  document.getElementById("found").textContent =
    box.value ? `${all.filter(row => !row.hidden).length} of ${all.length} rows` : "";
}

box.addEventListener("input", search);
heads.forEach((head, column) => {
  head.tabIndex = 0;
  head.title = "sort";
  head.setAttribute("aria-sort", "none");
  head.addEventListener("click", () => sort(column));
  head.addEventListener("keydown", event => event.key === "Enter" && sort(column));
});
</script>
"""  # noqa: E501

# An attribute and no script, as scripts do not run in what Snakemake puts on the first page of its report.
ENLARGE = "this.classList.toggle('large')"

FIGURE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{ caption }}</title>
<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 1em; background: #fff; color: #222; }
.wide { overflow-x: auto; }
img { width: 100%; min-width: 40em; max-width: {{ inches }}in; height: auto; cursor: zoom-in; }
img.large { max-width: none; width: 200%; min-width: 80em; cursor: zoom-out; }
@media (max-width: 40em) {
.wide::before { content: "\\2194  scroll"; display: inline-block; position: sticky; left: 0; color: #666; }
}
</style>
<p>{{ caption }}. Click on the figure to enlarge it.</p>
<div class="wide"><img src="{{ source }}" alt="{{ caption }}" onclick="{{ enlarge }}"></div>
"""


def figure(png: bytes, caption: str, inches: float) -> str:
    """A page with a figure, as wide as the window but at most `inches`, and twice that after a click.

    In a window so narrow that words would be too small it scrolls sideways.
    """
    page = Environment(autoescape=True).from_string(FIGURE)
    return page.render(caption=caption, source=embedded(png), inches=f"{inches:.1f}", enlarge=ENLARGE) + "\n"


def embedded(png: bytes) -> str:
    """A picture as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
