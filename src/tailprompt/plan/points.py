"""A run is a point, `protocol/backbone/dataset/method/seed`. Here is how points and their names are written.

`name@key=value,key=value` is a point of a sweep over a method's settings or a data set's cut; `slot.key`
speaks to one component. Values are read as JSON, else as a word. Names become folders, so a value is plain:
letters, digits and . _ + -.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache

from tailprompt.errors import BadInput

CHANGE = re.compile(r"([A-Za-z_]+\.)?[A-Za-z_]+=[A-Za-z0-9._+-]+")  # key=value or slot.key=value
LONGEST = 200  # characters of a name: file systems take 255, and endings follow


@dataclass(frozen=True, order=True)
class Point:
    """One run."""

    protocol: str
    backbone: str
    dataset: str
    method: str
    seed: int

    @property
    def path(self) -> str:
        """The run's folder below `results/<scale>/runs`."""
        return f"{self.protocol}/{self.backbone}/{self.dataset}/{self.method}/{self.seed}"

    @classmethod
    def at(cls, path: str) -> Point:
        """The point with this `path`; raises TypeError or ValueError if it is not the path of a point."""
        *words, seed = path.split("/")
        return cls(*words, int(seed))


@cache  # a plan splits each name hundreds of times
def parse(name: str) -> tuple[str, dict]:
    """Split `name@key=value,...` into the name and its changes, which are not to be changed.

    Raises BadInput if it is malformed.
    """
    base, at, changes = name.partition("@")
    pairs = changes.split(",") if at else []
    wrong = [pair for pair in pairs if not CHANGE.fullmatch(pair)]
    if wrong:
        raise BadInput(
            f"{name!r}: after @ come key=value pairs separated by commas, values of letters, digits, . _ + "
            f"and -, not {wrong[0]!r}; other values belong in a row of their own"
        )
    if len(name) > LONGEST:
        raise BadInput(f"'{name}' is longer than {LONGEST} characters; shorter is a row of its own")
    values = {key: word(value) for key, _, value in (pair.partition("=") for pair in pairs)}
    if len(values) < len(pairs):
        raise BadInput(f"'{name}' gives a key twice")
    return base, values


def word(value: str):
    """The value as JSON, or the text itself if it is not JSON."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def vary(method: str, key: str, value) -> str:
    """`method` with one more change after its @."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{method}{',' if '@' in method else '@'}{key}={text}"
