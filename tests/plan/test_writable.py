"""Places that jobs write to: a link that leads nowhere is said, and a folder in place of a file replaced."""

import json

import pytest

from tailprompt.errors import BadInput
from tailprompt.plan import standing
from tailprompt.plan.writable import check_links, check_writable


@pytest.mark.parametrize("target", ["nowhere", "itself"])
@pytest.mark.parametrize("place", ["runs/775", "runs/775/curve.csv"])
def test_a_link_that_leads_nowhere_is_one_sentence_before_any_job(tmp_path, place, target):
    link = tmp_path / place
    link.parent.mkdir(parents=True)
    link.symlink_to(target if target == "nowhere" else link.name)
    for check in (check_links, check_writable):
        with pytest.raises(BadInput, match=rf"^{link} is a link to \w.*, which leads nowhere; bring back"):
            check(standing.of_run(tmp_path / "runs/775"))
    link.unlink()
    link.symlink_to(tmp_path)
    check_links(standing.of_run(tmp_path / "runs/775"))


def test_a_folder_in_the_place_of_a_jobs_only_file_is_asked_to_be_replaced(tmp_path):
    asked, scores = tmp_path / "asked/scores.json", tmp_path / "scores.parquet"
    standing.write(asked, {"spec": {}}, [scores], settled=False)
    scores.mkdir()
    standing.write(asked, {"spec": {}}, [scores], settled=False)
    assert json.loads(asked.read_text())["replaces"] == scores.stat().st_mtime_ns
    assert asked.stat().st_mtime_ns > scores.stat().st_mtime_ns, "else Snakemake takes it to be made"
