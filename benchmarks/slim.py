"""Reduce runs to what tables and figures need, so that many runs fit in a small archive.

It keeps the class vectors of the weights, predictions without the scores of classes, and features in half
precision.

python benchmarks/slim.py results/mini
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load_file, save_file

for path in Path(sys.argv[1]).glob("runs/*/*/*/*/*/weights.safetensors"):
    save_file({"class_vectors": load_file(path)["class_vectors"].astype(np.float16)}, path)
    predictions = pd.read_parquet(path.with_name("predictions.parquet"))
    predictions.drop(columns="scores", errors="ignore").to_parquet(
        path.with_name("predictions.parquet"), index=False, compression="zstd"
    )
    features = pd.read_parquet(path.with_name("features.parquet"))
    features["vector"] = [vector.astype(np.float16).astype(np.float32) for vector in features["vector"]]
    features.to_parquet(path.with_name("features.parquet"), index=False, compression="zstd")
