"""Write a sheet as LaTeX (booktabs), Markdown or HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jinja2 import Environment
from markupsafe import Markup, escape

from tailprompt.report import browse
from tailprompt.report.sheet import Cell, Sheet

WIDE = 120  # width in characters above which a LaTeX table is rotated
PARAGRAPH = 45  # greatest width in characters of a column of sentences
IDEOGRAPHS = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+")
ESCAPES = {letter: f"\\{letter}" for letter in "&%$#_{}"}
ESCAPES |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
ESCAPES |= {"\u2212": "$-$", "\u00b1": r"$\pm$", "\u00d7": r"$\times$", "\u03c4": r"$\tau$"}
ESCAPES |= {"\u03b7": r"$\eta$", "\u2192": r"$\to$", "\u2265": r"$\ge$", "\u2264": r"$\le$"}
ESCAPES |= {"<": r"\textless{}", ">": r"\textgreater{}"}


def tex_text(text: str) -> str:
    """Text for LaTeX: special characters escaped, runs of Chinese set in a Chinese font."""
    escaped = "".join(ESCAPES.get(letter, letter) for letter in text)
    return IDEOGRAPHS.sub(lambda run: rf"\ideographs{{{run.group()}}}", escaped)


def tex_cell(cell: Cell) -> str:
    """A cell in LaTeX as GLEE prints it: the spread is a subscript, the mark a superscript, the best bold."""
    text = tex_text(cell.text)
    raised = f"^{{{cell.mark}}}" if cell.mark else ""
    lowered = f"_{{{cell.spread}}}" if cell.spread else ""
    return (rf"\textbf{{{text}}}" if cell.best else text) + (
        f"${raised}{lowered}$" if raised or lowered else ""
    )


def md_text(text: str) -> str:
    """Text for a Markdown table."""
    return re.sub(r"([\\|*_<>`\[\]])", r"\\\1", text).replace("\n", " ")


def md_cell(cell: Cell) -> str:
    """A cell in Markdown, with the spread after a plus-minus sign."""
    text = md_text(cell.text)
    text = f"**{text}**" if cell.best and text else text
    return text + md_text(cell.mark) + (f" \u00b1 {cell.spread}" if cell.spread else "")


def html_cell(cell: Cell) -> Markup:
    """A cell in HTML, with the spread in small print."""
    text = Markup("<b>{}</b>").format(cell.text) if cell.best and cell.text else escape(cell.text)
    spread = Markup(" <small>\u00b1 {}</small>").format(cell.spread) if cell.spread else ""
    return text + escape(cell.mark) + spread


def md_heads(sheet: Sheet) -> list[str]:
    """Column heads with the title of their group before them, because Markdown has one row of heads."""
    titles = [title for title, span in sheet.groups for _ in range(span)]
    pairs = zip(titles, sheet.heads, strict=True)
    return [md_text(f"{title} {head}".strip()) for title, head in pairs]


def across(sheet: Sheet) -> int:
    """The approximate width of a sheet in characters, with the space between columns."""
    rows = [row for block in sheet.blocks for row in block.rows]
    widths = [[len(cell.text) + len(cell.spread) for cell in row] for row in rows] + [
        list(map(len, sheet.heads))
    ]
    return sum(1 + min(PARAGRAPH, max(column)) for column in zip(*widths, strict=True))


def rules(groups: Sequence[tuple[str, int]]) -> list[str]:
    """The thin rules under the titles of column groups."""
    ends, lines = 0, []
    for title, span in groups:
        if title:
            lines.append(rf"\cmidrule(lr){{{ends + 1}-{ends + span}}}")
        ends += span
    return lines


TEX = r"""
% Needs \usepackage{adjustbox,array,booktabs,rotating}
<% if ideographs %>
% and CJKutf8 (with XeLaTeX, xeCJK and an \ideographs that prints its argument)
\providecommand{\ideographs}[1]{\begin{CJK*}{UTF8}{gbsn}#1\end{CJK*}}
<% endif %>
\begin{<< kind >>}[p]
\centering
\footnotesize
\setlength{\tabcolsep}{3pt}
\caption{<< sheet.caption | closed | text >>}
\label{<< sheet.label >>}
\smallskip
\begin{adjustbox}{max width=\linewidth,max totalheight=0.8\textheight}
\begin{tabular}{<< sheet.align | join >>}
\toprule
<% if sheet.groups | selectattr(0) | list %>
<% for title, span in sheet.groups %>
\multicolumn{<< span >>}{c}{<< title | text >>} << "&" if not loop.last else "\\\\" >>
<% endfor %>
<< rules(sheet.groups) | join(" ") >>
<% endif %>
<< sheet.heads | map("text") | join(" & ") >> \\
<% for block in sheet.blocks %>
\midrule
<% if block.title %>
\multicolumn{<< sheet.align | length >>}{l}{\emph{<< block.title | text >>}} \\
<% endif %>
<% for row in block.rows %>
<< row | map("cell") | join(" & ") >> \\
<% endfor %>
<% endfor %>
\bottomrule
\end{tabular}
\end{adjustbox}
<% if sheet.notes %>

\smallskip
\begin{minipage}{0.95\linewidth}
\scriptsize
<% for note in sheet.notes %>
<< note | text >>\par
<% endfor %>
\end{minipage}
<% endif %>
\end{<< kind >>}
"""

MARKDOWN = """
**<< sheet.caption | closed | text >>**
<% for block in sheet.blocks %>

<% if block.title %>
*<< block.title | text >>*

<% endif %>
| << heads | join(" | ") >> |
|<% for kind in sheet.align %><< "--:" if kind == "r" else "---" >>|<% endfor %>

<% for row in block.rows %>
| << row | map("cell") | join(" | ") >> |
<% endfor %>
<% endfor %>
<% for note in sheet.notes %>

<< note | text >>
<% endfor %>
"""

HTML = """
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title><< sheet.caption >></title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5em; background: #fff; color: #222; }
h1 { font-size: 1em; max-width: 60em; margin: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; border-bottom: 2px solid; }
th, td { padding: .15em .6em; text-align: left; vertical-align: top; }
th.r, td.r { text-align: right; white-space: nowrap; }
td:first-child { min-width: 10em; position: sticky; left: 0; background: #fff; }
th.group { text-align: center; border-bottom: 1px solid #999; }
thead th { vertical-align: bottom; }
thead tr:first-child th { border-top: 2px solid; }
tbody tr:first-child > * { border-top: 1px solid; }
th.block { font-style: italic; font-weight: normal; }
small { color: #666; } p { max-width: 60em; font-size: 12px; margin: .4em 0; }
th[aria-sort] { cursor: pointer; } th[aria-sort]:hover { text-decoration: underline; }
th[aria-sort]::after { content: "\u00a0\u2195"; color: #999; }
th[aria-sort=ascending]::after { content: "\u00a0\u25b2"; }
th[aria-sort=descending]::after { content: "\u00a0\u25bc"; }
@media (max-width: 40em) { body { margin: 1em; } }
</style>
<h1><< sheet.caption | closed >></h1>
<< search >>
<div class="wide"><table>
<thead>
<% if sheet.groups | selectattr(0) | list %>
<tr>
<% for title, span in sheet.groups %>
<th colspan="<< span >>" class="<< "group" if title >>"><< title >></th>
<% endfor %>
</tr>
<% endif %>
<tr><% for head in sheet.heads %><th class="<< sides[loop.index0] >>"><< head >></th><% endfor %></tr>
</thead>
<% for block in sheet.blocks %>
<tbody>
<% if block.title %>
<tr><th class="block" colspan="<< sides | length >>"><< block.title >></th></tr>
<% endif %>
<% for row in block.rows %>
<tr><% for cell in row %><td class="<< sides[loop.index0] >>"><< cell | cell >></td><% endfor %></tr>
<% endfor %>
</tbody>
<% endfor %>
</table></div>
<% for note in sheet.notes %>
<p><< note >></p>
<% endfor %>
<< script >>
"""


def environment(text, cell, *, escape: bool = False) -> Environment:
    """A Jinja environment whose delimiters occur in neither LaTeX nor Markdown. escape: for HTML."""
    jinja = Environment(
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=escape,
    )
    jinja.filters.update(text=text, cell=cell, closed=closed)
    return jinja


def closed(caption: str) -> str:
    """A caption as a sentence; a question has its own mark."""
    return caption if caption.endswith("?") else f"{caption}."


def tex(sheet: Sheet) -> str:
    """A floating table to `\\input`, rotated if it is wide."""
    kind = "sidewaystable" if across(sheet) > WIDE else "table"
    words = [
        sheet.caption,
        *sheet.notes,
        *(block.title for block in sheet.blocks),
        *(t for t, _ in sheet.groups),
    ]
    words += [cell.text for block in sheet.blocks for row in block.rows for cell in row]
    ideographs = bool(IDEOGRAPHS.search("".join(words)))
    template = environment(tex_text, tex_cell).from_string(TEX.lstrip())
    return template.render(sheet=sheet, kind=kind, rules=rules, ideographs=ideographs).rstrip() + "\n"


def md(sheet: Sheet) -> str:
    """A Markdown table for each block."""
    template = environment(md_text, md_cell).from_string(MARKDOWN.lstrip())
    return template.render(sheet=sheet, heads=md_heads(sheet)).rstrip() + "\n"


def html(sheet: Sheet) -> str:
    """An HTML page with the table, which can be searched and sorted, for Snakemake's report."""
    sides = ["r" if kind == "r" else "l" for kind in sheet.align]
    template = environment(str, html_cell, escape=True).from_string(HTML.lstrip())
    parts = {"search": Markup(browse.SEARCH), "script": Markup(browse.TABLE)}
    return template.render(sheet=sheet, sides=sides, **parts).rstrip() + "\n"
