"""A template: words around {text}, perhaps {pair}, and the {mask} that is read."""

from __future__ import annotations

from collections import Counter
from string import Formatter

from tailprompt.errors import BadInput


def pieces(
    template: str, *, paired: bool, options: bool = False, where: str = "template"
) -> list[tuple[str, str | None]]:
    """(words, name in the braces after them) in order.

    Raises BadInput, with the place `where`, unless {text} and {mask} stand once, {pair} and {choices} at most
    once and only where there are such (`paired`, `options`), and nothing else in braces.
    """
    try:
        parsed = list(Formatter().parse(template))
    except ValueError as error:
        raise BadInput(f"{where} '{template}' cannot be read ({error})") from None
    extra = [name for name, there in (("pair", paired), ("choices", options)) if there]
    allowed = ("text", "mask", *extra)
    needs = "{text} and {mask} once each" + "".join(f", {{{name}}} at most once" for name in extra)
    named = Counter(name for _, name, _, _ in parsed if name is not None)
    for _, name, form, conversion in parsed:
        if name is not None and (name not in allowed or form or conversion):
            shown = name + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
            raise BadInput(f"{where} '{template}' has {{{shown}}}; allowed here: {needs}")
    if named["text"] != 1 or named["mask"] != 1 or max(named[name] for name in ("pair", "choices")) > 1:
        raise BadInput(f"{where} '{template}' needs {needs}, and nothing else in braces")
    return [(words, name) for words, name, _, _ in parsed]


def template_of(settings: dict) -> str:
    """The data set's template, in the form that the method asks for where the released one differs."""
    released = settings.get("template_as_released")
    return released if released and settings["template_form"] == "as_released" else settings["template"]
