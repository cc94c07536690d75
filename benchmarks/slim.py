"""Keep of each run's weights the class vectors only, so that many runs travel in a small archive.

python benchmarks/slim.py results/mini
"""

import sys
from pathlib import Path

from safetensors.numpy import load_file, save_file

for path in Path(sys.argv[1]).glob("runs/*/*/*/*/*/weights.safetensors"):
    save_file({"class_vectors": load_file(path)["class_vectors"]}, path)
