"""Which files of a folder are a backbone's."""

import pytest

from tailprompt.model.folder import FILES, files_in


@pytest.mark.parametrize(
    "family, own", [("bert", []), ("roberta", []), ("deberta", ["vocab.json"]), ("deberta-v2", ["spm.model"])]
)
def test_a_family_has_files_of_its_own(tmp_path, family, own):
    for name in ("config.json", "vocab.json", "spm.model", "model-1.safetensors", "README.md"):
        (tmp_path / name).write_text("")
    assert list(files_in(tmp_path, family)) == sorted(["config.json", "model-1.safetensors", *own])


def test_the_files_that_every_folder_needs_come_first():
    assert FILES[:3] == ["config.json", "model.safetensors", "tokenizer.json"]
