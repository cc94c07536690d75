"""The page as one HTML file without links, and as Markdown for the screen."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jinja2 import Environment
from markupsafe import Markup

from tailprompt.report.sheet import Sheet
from tailprompt.report.typeset import md, md_text


@dataclass(frozen=True)
class Section:
    """A title, sentences, a picture (SVG) and a table, or lines of commands."""

    title: str
    sentences: list[str]
    picture: str = ""
    sheet: Sheet | None = None
    commands: tuple[str, ...] = ()


HTML = """
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{ title }}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 68em; padding: 0 1em; color: #222; background: #fff; }
h1 { font-size: 1.2em; color: #666; font-weight: normal; margin-bottom: .2em; }
.answer { font-size: 1.35em; line-height: 1.35; border-left: 6px solid #0072B2; padding-left: .8em; margin: .4em 0 1em; }
h2 { font-size: 1.1em; margin: 2em 0 .4em; border-bottom: 1px solid #ccc; }
.wide { overflow-x: auto; }
svg { display: block; width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; margin: .6em 0; }
th, td { padding: .2em .5em; text-align: left; vertical-align: top; border-bottom: 1px solid #ddd; }
th.r, td.r { text-align: right; white-space: nowrap; }
thead th, thead th.r { border-bottom: 2px solid #222; vertical-align: bottom; white-space: normal; }
tr:has(td:first-child b) td { background: #0072B211; }
pre { background: #f3f3f3; padding: .7em; overflow-x: auto; font-size: 13px; }
small, .note { color: #666; font-size: 12px; }
@media (max-width: 40em) { body { margin: 1em auto; } td:first-child, td.l { min-width: 9em; } .wide:has(svg)::before { content: "\\2194  scroll"; display: inline-block; position: sticky; left: 0; color: #666; } }
</style>
<h1>{{ title }}</h1>
<p class="answer">{{ answer }}</p>
{% for part in sections %}
{% if part.title %}<h2>{{ part.title }}</h2>{% endif %}
{% for sentence in part.sentences %}<p>{{ sentence }}</p>{% endfor %}
{% if part.picture %}<div class="wide">{{ part.picture | picture }}</div>{% endif %}

{% if part.sheet %}
{% set sheet = part.sheet %}
<div class="wide"><table><thead><tr>
{% for head in sheet.heads %}<th class="{{ sheet.align[loop.index0] }}">{{ head }}</th>{% endfor %}
</tr></thead><tbody>
{% for block in sheet.blocks %}{% for row in block.rows %}
<tr>{% for cell in row %}<td class="{{ sheet.align[loop.index0] }}">{% if cell.best %}<b>{{ cell.text }}</b>{% else %}{{ cell.text }}{% endif %}{% if cell.spread %} <small>± {{ cell.spread }}</small>{% endif %}</td>{% endfor %}</tr>
{% endfor %}{% endfor %}
</tbody></table></div>
{% for note in sheet.notes %}<p class="note">{{ note }}</p>{% endfor %}
{% endif %}
{% if part.commands %}<pre>{{ part.commands | join("\n") }}</pre>{% endif %}
{% endfor %}
</html>
"""  # noqa: E501


def html(title: str, answer: str, sections: list[Section]) -> str:
    """The page with its pictures in it; whatever came from the data is escaped."""
    jinja = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    jinja.filters["picture"] = Markup
    return jinja.from_string(HTML.lstrip()).render(title=title, answer=answer, sections=sections)


def markdown(title: str, answer: str, sections: list[Section]) -> str:
    """The page without its pictures."""
    lines = [f"# {md_text(title)}", "", f"**{md_text(answer)}**", ""]
    for part in sections:
        lines += [f"## {md_text(part.title)}", ""] if part.title else []
        lines += [line for sentence in part.sentences for line in (md_text(sentence), "")]
        lines += [md(part.sheet).strip(), ""] if part.sheet else []
        lines += ["```", *part.commands, "```", ""] if part.commands else []
    return "\n".join(lines).rstrip() + "\n"


def on_screen(text: str) -> str:
    """Markdown without the backslashes that its letters need, for people who read it as it is."""
    return re.sub(r"\\([\\|*_<>`\[\]])", r"\1", text)
