"""A run's settings are exactly those that it reads: run.json has no unread setting and lacks none."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import toy
import toy_images
from conftest import ROW

from tailprompt import train
from tailprompt.components.declare import ABSENT, settings_of
from tailprompt.components.resolve import composed
from tailprompt.components.run import Run

SMALL = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_decoder_layers": 1, "num_heads": 2}
T5 = {"family": "t5", "path": "workflow/resources/backbones/t5-mini", "random": SMALL}
Place = tuple[str, str]  # slot and key


def components(component: type, slot: str = "", chosen: Place | None = None) -> Iterator[tuple]:
    """(component, its slot, the place where it is chosen) of a component and of all below it."""
    yield component, slot, chosen
    for each in settings_of(component):
        for option in (each.options or {}).values():
            below = (each.name, (slot, each.name)) if each.kind == "choice" else (slot, None)
            yield from components(option, *below)


def places() -> dict[tuple[type, str], Place]:
    """The place of a setting by the component and the attribute that tell it; of a choice by its name."""
    found: dict[tuple[type, str], Place] = {}
    for component, slot, chosen in components(Run):
        told = {each.name: (slot, each.name) for each in settings_of(component) if each.kind == "key"}
        for attribute, place in (told | ({"name": chosen} if chosen else {})).items():
            assert found.setdefault((component, attribute), place) == place
    return found


PLACES = places()


@pytest.fixture
def read(monkeypatch) -> set[Place]:
    """The places that are read once a run is composed."""
    seen: set[Place] = set()

    def noting(component, attribute: str):
        value = object.__getattribute__(component, attribute)
        if (type(component), attribute) in PLACES:
            seen.add(PLACES[type(component), attribute])
        return value

    def run_of(settings: dict) -> Run:
        run = made(settings)
        seen.clear()
        return run

    made = train.run_of
    monkeypatch.setattr(train, "run_of", run_of)
    for component in {component for component, _ in PLACES}:
        monkeypatch.setattr(component, "__getattribute__", noting)
    return seen


def told(settings: dict, reads: str) -> set[Place]:
    """The places that settings tell."""

    def lookup(slot: str, key: str):
        return settings.get(f"{slot}.{key}", settings.get(key, ABSENT))

    return composed(lookup, reads=reads)[1].keys()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A scale's folder with a verbalizer of the toy's classes."""
    folder = tmp_path_factory.mktemp("scale")
    (folder / "images").mkdir()
    (folder / "words.csv").write_text("label,words\nmusic,song\nsport,match\nlaw,court\n", "utf-8")
    return folder


def trained(root, method: str, start=None):
    """A run of a method, all of its epochs in two or three steps."""
    told = {"epochs": 1}
    if "verbalizer" in toy.METHODS[method]:
        told["verbalizer"] = str(root / "words.csv")
    if method in toy.FITTED:
        told = {"steps": 2, "pairs": 4} if method.startswith("setfit") else {}
    if toy.READS[method] == "image":
        told |= {"select": "f1"} if method in toy.FITTED else {}
        return toy_images.run(root / "images", method, start=start, **told)
    row = T5 if method in toy.FORMATTED else {"family": "tfidf"} if method == "tfidf" else ROW
    return toy.run(root, method, start=start, row=row, **told)


@pytest.fixture(scope="module")
def started(root):
    """The run that a method starts from, each trained once."""
    made = {None: None}

    def start_of(method: str):
        start = (toy.METHODS[method].get("start") or {}).get("method")
        if start not in made:
            made[start] = trained(root, start)
        return made[start]

    return start_of


@pytest.mark.parametrize("method", toy.METHODS)
def test_a_method_reads_what_it_is_told_and_nothing_else(root, started, request, method):
    start = started(method)
    read = request.getfixturevalue("read")
    run = trained(root, method, start)
    settings = json.loads((run / "run.json").read_text("utf-8"))["settings"]
    assert read == told(settings, toy.READS[method])
