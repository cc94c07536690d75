"""What a printed number may be: finite, of something known, once; said before any training."""

from pathlib import Path

import pytest

from tailprompt.errors import BadInput
from tailprompt.plan import config
from tailprompt.plan.printed import STATISTICS, check_printed
from tailprompt.plan.printed_file import COLUMNS
from tailprompt.report.tables import feature_statistics, scores, statistics

HEADER = ",".join(COLUMNS)
GOOD = "table2,cmid,prompt,f1/all,80.1,0.5,5"
FAULTS = {  # a line after two good ones -> what is said of it
    "table2,cmid,prompt,f1/all,70.2,,5": "table2, cmid, prompt, f1/all is in line 2 too",
    "table2,cmid,prompt-focal,f1/all,1e400,,5": "value '1e400' is no number",
    "table2,cmid,prompt-focal,f1/all,nan,,5": "value 'nan' is no number",
    "table2,cmid,prompt-focal,f1/all,,,5": "value '' is no number",
    "table2,cmid,prompt-focal,f1/all,8O.1,,5": "value '8O.1' is no number",
    'table2,cmid,prompt-focal,f1/all,"80,1",,5': "value '80,1' is no number",
    "table2,cmid,prompt-focal,f1/all,80.1,x,5": "spread 'x' is no number; write one as 80.1 or nothing",
    "table2,cmid,prompt-focal,f1/all,80.1": "5 cells; a row has 7",
    "table2,cmid,prompt-focal,f1/all,80.1,,5,,,": "10 cells; a row has 7",
    "table2;cmid;prompt-focal;f1/all;80.1;;5": "1 cells; a row has 7",
    'table2,cmid,"prompt-focal,f1/all,80.1,,5': "cannot be read",
    "table22,cmid,prompt-focal,f1/all,80.1,,5": "unknown table 'table22'; the paper's are table1, ",
    "table2,cmdi,prompt-focal,f1/all,80.1,,5": "unknown dataset 'cmdi'; `reported` names ",
    "table2,cmid,promt,f1/all,80.1,,5": "unknown method 'promt'; it is a row of methods",
    "table2,cmid,prompt/no-bert,f1/all,80.1,,5": "unknown method 'prompt/no-bert'; it is a row of methods",
    "table2,cmid,,f1/all,80.1,,5": "unknown method ''; it is a row of methods",
    "table2,cmid,prompt-focal,f1/al,80.1,,5": "unknown metric 'f1/al'; it is ",
}


@pytest.fixture(scope="module")
def loaded():
    return config.load(["tests/tiny.yaml"])


@pytest.fixture
def numbers(tmp_path):
    (tmp_path / "workflow/schemas").mkdir(parents=True)  # the mark of a project
    file = tmp_path / "config/reported/glee.csv"
    file.parent.mkdir(parents=True)
    return file


@pytest.mark.parametrize("line", FAULTS)
def test_a_faulty_line_is_one_sentence_with_its_number(loaded, numbers, tmp_path, line):
    numbers.write_text("\n".join([HEADER, GOOD, "table1,cmid,,mean_length,32.0,,4", ""]))
    check_printed(loaded, tmp_path)
    numbers.write_text("\n".join([HEADER, GOOD, "table1,cmid,,mean_length,32.0,,4", line, ""]))
    with pytest.raises(BadInput) as said:
        check_printed(loaded, tmp_path)
    assert str(said.value).startswith(f"{numbers}: line 4") and FAULTS[line] in str(said.value)


@pytest.mark.parametrize(
    "data, said",
    [
        (b"", "the first line must be the header"),
        (GOOD.encode(), "the first line must be the header"),
        (f"{HEADER}\n{GOOD}".replace(",", ";").encode(), "the first line must be the header"),
        (f"{HEADER}\n{GOOD}".encode("utf-16-le"), "the first line must be the header"),
        (f"{HEADER}\n{GOOD}".encode("utf-16"), "is not UTF-8"),
        (f"{HEADER}\n{GOOD[:-1]}§ 5".encode("latin-1"), r"\(line 2\) is not UTF-8"),
    ],
)
def test_a_file_in_another_form_is_refused(loaded, numbers, tmp_path, data, said):
    numbers.write_bytes(data)
    with pytest.raises(BadInput, match=said):
        check_printed(loaded, tmp_path)


def test_a_file_with_a_byte_order_mark_and_other_ends_of_lines_is_read(loaded, numbers, tmp_path):
    numbers.write_bytes(f"{HEADER}\r\n{GOOD}\r\n\r\n".encode("utf-8-sig"))
    check_printed(loaded, tmp_path)


def test_the_numbers_of_a_paper_whose_claims_are_of_its_tables_are_there(loaded, numbers, tmp_path):
    with pytest.raises(BadInput, match=r"there is no file .*glee\.csv; put the printed numbers back"):
        check_printed(loaded, tmp_path)
    check_printed({**loaded, "make": {"mine": {}}}, tmp_path)


def test_the_numbers_that_ship_are_taken(loaded):
    check_printed({**loaded, "make": dict.fromkeys(loaded["papers"], {})})
    assert len([*Path("config/reported").glob("*.csv")]) == 4


def test_each_statistic_that_a_table_shows_may_be_printed():
    shown = {name for name, *_ in statistics.COLUMNS} | {*scores.PARAMETERS, *feature_statistics.MEASURES}
    assert shown <= {*STATISTICS}
