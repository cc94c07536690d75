"""What tables and figures read in the weights of a run: sizes of tensors and norms of class vectors.

The weights of a run from a bundle did not travel. A summary, `weights.json`, did.
"""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
from safetensors import safe_open

from tailprompt.errors import BadInput
from tailprompt.files import read_json, reading
from tailprompt.plan import agreement


def norms(folder: Path) -> np.ndarray:
    """The Euclidean length of each class vector of a run, `[classes]`."""
    lengths = summary(folder)["norms"]
    if lengths is None:
        raise BadInput(f"the weights in {folder} have no tensor class_vectors")
    return np.array(lengths)


def sizes(folder: Path) -> dict[str, int]:
    """The number of elements of each tensor that a run wrote, by name."""
    return summary(folder)["sizes"]


def summary(folder: Path) -> dict:
    """The `sizes` and `norms` of a run's weights; `norms` is None without class vectors."""
    path, brought = folder / "weights.safetensors", folder / "weights.json"
    if brought.is_file() and not path.is_file():
        return read_json(brought, "norms", "sizes")
    if (folder / "run.json").is_file():
        agreement.check_weights(folder)
    with reading(path), safe_open(path, "numpy") as file:
        names = sorted(file.keys())
        vectors = file.get_tensor("class_vectors").astype(float) if "class_vectors" in names else None
        return {
            "norms": None if vectors is None else np.linalg.norm(vectors, axis=1).tolist(),
            "sizes": {name: prod(file.get_slice(name).get_shape()) for name in names},
        }
