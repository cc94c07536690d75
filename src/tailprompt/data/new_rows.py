"""Rows without labels, as `tailprompt predict` is given them: a table of texts, or images."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from tailprompt.data import checks, folders, usual_forms
from tailprompt.data.columns import CHOICES, TEXT, are_texts, is_plain, listed, names_of, offered, strings
from tailprompt.data.contents import NOTES, PLACE, WrongEncoding, kind_of, lines_in
from tailprompt.data.contents import decoded as decoded_text
from tailprompt.data.labels import invisible
from tailprompt.data.pictures import ENDINGS
from tailprompt.data.pixels import check_space, damaged, filled
from tailprompt.data.preflight import places
from tailprompt.data.readers import rows
from tailprompt.data.sentences import joined_words, split_words
from tailprompt.errors import BadInput, counted, few, known
from tailprompt.machine.cpus import CPUS

Columns = dict[str, str | list[str]]  # text, pair, choices or path -> the column, or several, with it
NONE: Columns = {}
HINT = "state its encoding with --encoding"


def columns_of(wanted: list[str], given: dict[str, str | list[str] | None], run: Path) -> Columns:
    """The columns to read, by what is in them; raises BadInput where one is given that the run has not."""
    if surplus := [f"--{key}" for key, name in given.items() if name and key not in wanted]:
        kinds = {"path": "images", "text": "single texts"}
        kind = kinds[wanted[0]] if len(wanted) == 1 else f"rows of {' and '.join(wanted)}"
        raise BadInput(f"{run} was trained on {kind}; leave out {known(surplus)}")
    return {key: given[key] or key for key in wanted}


def read(
    file: Path,
    columns: Columns,
    *,
    encoding: str,
    taken: tuple[str, ...],
    options: int,
    unit: str = "example",
    own: Columns = NONE,
    form: Mapping = NONE,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of a file as they are, and as a run's input takes them.

    own: the columns of the run's data, for what the file has not under our name. taken: names of columns that
    are to be added. options: the most that a row may have. unit: what the run predicts. Of tokens texts are
    split into words, unless they come as lists of words. Files of CoNLL and SQuAD are read as they are.
    form: FORM of CSV and TSV files.
    """
    images = "path" in columns
    usual = usual_form(file, columns, encoding, unit=unit) if file.is_file() else None
    if usual:
        table, columns = usual
    else:
        table = rows_of(file, encoding, form, images=images)
        columns = there(table, columns, own)
    if clash := [name for name in taken if name in table]:
        raise BadInput(f"{file} has a column {known(clash)} already; rename it")
    if images:
        return table, images_of(table, columns, file)
    return table, sentences_of(table, columns, file) if unit == "token" else texts_of(
        table, columns, file, options
    )


def there(table: pd.DataFrame, columns: Columns, own: Columns) -> Columns:
    """The columns, with the names of the run's own data for what the file has not under ours."""
    absent = {key for key, name in columns.items() if name == key and key not in table}
    return columns | {key: own[key] for key in absent & own.keys()}


def usual_form(
    file: Path, columns: Columns, encoding: str, *, unit: str
) -> tuple[pd.DataFrame, Columns] | None:
    """What `usual_forms.read` returns; a wrong encoding says how to state another."""
    try:
        return usual_forms.read(file, columns, encoding, unit=unit) or lines_of(
            file, columns, encoding, unit=unit
        )
    except WrongEncoding as error:
        raise BadInput(f"{error}, or {HINT}") from None


def lines_of(
    file: Path, columns: Columns, encoding: str, *, unit: str
) -> tuple[pd.DataFrame, Columns] | None:
    """Each line of a .txt as a text; None for another file, and where the first line names columns."""
    if kind_of(file) != "txt" or columns != {TEXT: TEXT}:
        return None
    if unit == "token" and usual_forms.has_header(file, "txt", columns):
        return None
    lines = lines_in(decoded_text(file, encoding))
    if lines and TEXT in lines[0].strip().split("\t"):
        return None
    return pd.DataFrame({TEXT: lines, PLACE: [f"{file.name}:{n}" for n in range(1, len(lines) + 1)]}), columns


def rows_of(file: Path, encoding: str, form: Mapping, *, images: bool) -> pd.DataFrame:
    """The rows of a file; of images also those of a folder, or one alone, by path."""
    if images and (file.is_dir() or file.suffix.lower() in ENDINGS):
        found = folders.images(file) if file.is_dir() else folders.readable([file])
        skipped = folders.others(folders.skipped(file, found))
        if not found:
            raise BadInput(
                f"{file}: no image is there; they end in {known(ENDINGS)}{skipped and f'; {skipped}'}"
            )
        if skipped:
            print(f"{file}: {skipped}; images end in {known(ENDINGS)}", file=sys.stderr)
        return pd.DataFrame({"path": [str(path) for path in found]})
    if not file.is_file():
        raise BadInput(f"{file} is a folder; a run on texts takes a file of rows")
    wrong: list[str] = []
    table = rows(file, encoding, hint=HINT, wrong=wrong, **form)
    for told in [*wrong, *table.attrs.pop(NOTES, [])]:
        print(told, file=sys.stderr)
    return table


def cells(table: pd.DataFrame, columns: Columns, path: Path) -> pd.DataFrame:
    """Columns under their keys, each cell as text, choices as a list of texts.

    Raises BadInput for a column or cell that is not there.
    """
    for key, names in columns.items():
        if absent := [name for name in listed(names) if name not in table]:
            have = names_of(table, absent)
            hint = "the columns of the options, or the one of lists," if key == CHOICES else "the right one"
            raise BadInput(f"{path} has no column '{absent[0]}'; it has: {have}; name {hint} with --{key}")
    one = [name for key, name in columns.items() if key != CHOICES or isinstance(name, list)]
    table = without_odd(table, [each for name in one for each in listed(name)], is_plain, "", path)
    if isinstance(columns.get(CHOICES), str):
        table = without_odd(table, [columns[CHOICES]], are_texts, [], path)
    out = strings(table, {key: name for key, name in columns.items() if key != CHOICES}, path)
    return out.assign(**{CHOICES: offered(table, columns[CHOICES], path)}) if CHOICES in columns else out


def without_odd(table: pd.DataFrame, names: list[str], fits: Callable, empty, path: Path) -> pd.DataFrame:
    """The table with empty cells in the place of those that do not fit, unless none does; they are told."""
    for name in names:
        good = table[name].map(fits).astype(bool)
        if good.any() and not good.all():
            kinds = known({type(cell).__name__ for cell in table[name][~good]})
            where = few(list(table[PLACE][~good]))
            print(
                f"{path}: {counted((~good).sum(), 'row', 'hold')} {kinds} in '{name}' ({where})",
                file=sys.stderr,
            )
            cells = [cell if fit else empty for cell, fit in zip(table[name], good, strict=True)]
            table = table.assign(**{name: pd.Series(cells, index=table.index, dtype=object)})
    return table


def texts_of(table: pd.DataFrame, columns: Columns, path: Path, most: int) -> pd.DataFrame:
    """What `encode_rows` reads, of the rows that can be answered. most: options that a row may have."""
    texts = cells(table, columns, path)
    texts = answerable(texts, path, most)
    if CHOICES in texts and (odd := checks.odd_options(texts)):
        print(f"{path}: {odd}", file=sys.stderr)
    return texts.assign(label=0, id=texts[PLACE])


def answerable(texts: pd.DataFrame, path: Path, most: int) -> pd.DataFrame:
    """The rows with all that a prediction needs; the others are told. Raises BadInput if none has it."""
    lacking = {
        f"an empty {key}": texts[key].map(invisible).astype(bool)
        for key in texts.columns.difference([CHOICES, PLACE])
    }
    if CHOICES in texts:
        lacking[f"not 2 to {most} choices"] = ~texts[CHOICES].map(len).between(2, most)
    bad = pd.DataFrame(lacking).any(axis=1)
    if bad.all():
        checks.texts(texts, str(path), options=most)
    for what, without in lacking.items():
        if without.any():
            where = few(list(texts[PLACE][without]))
            print(
                f"{path}: {counted(without.sum(), 'row', 'have')} {what}, so there is no answer ({where})",
                file=sys.stderr,
            )
    return texts[~bad]


def sentences_of(table: pd.DataFrame, columns: Columns, path: Path) -> pd.DataFrame:
    """Words, text, and the first character of each word in it; words that come as a list are so joined.

    A list with an empty word, of which a tag would say nothing, counts as an empty text.
    """
    given = table.get(columns["text"], pd.Series(index=table.index))
    is_list = given.map(are_texts)
    odd = is_list & given.map(lambda words: are_texts(words) and 0 < sum(map(invisible, words)) < len(words))
    if odd.all():
        checks.refuse(table, odd, f"'{path}': {{rows}} an empty word ({{places}}); leave it out")
    if odd.any():
        where = few(list(table[PLACE][odd]))
        print(
            f"{path}: {counted(odd.sum(), 'row', 'have')} an empty word ({where}); leave it out",
            file=sys.stderr,
        )
    given, is_list = given.mask(odd, ""), is_list & ~odd
    plain = table.assign(**{columns["text"]: given.where(~is_list, given[is_list].map(" ".join))})
    texts = cells(plain if columns["text"] in table else table, columns, path)
    texts = answerable(texts, path, 0)
    given, is_list = given[texts.index], is_list[texts.index]
    split = [
        joined_words(list(cell)) if own else split_words(text)
        for cell, own, text in zip(given, is_list, texts["text"], strict=True)
    ]
    words, offsets = zip(*split, strict=True)
    return texts.assign(words=words, offsets=offsets, id=texts[PLACE])


def images_of(table: pd.DataFrame, columns: dict[str, str], path: Path) -> pd.DataFrame:
    """What `view_rows` reads, and the files. Paths in a list begin at the list's folder."""
    if PLACE in table:
        paths = cells(table, columns, path).rename(columns={"path": "id"})
        files = [path.parent / name for name in paths["id"]]
    else:
        paths = table.rename(columns={"path": "id"})
        files = [Path(name) for name in paths["id"]]
    return paths.assign(label=0, image=range(len(paths)), file=files)


@contextmanager
def decoded(images: pd.DataFrame, how: dict, file: Path, out: Path) -> Iterator[tuple[pd.DataFrame, Path]]:
    """The images that can be read, and an array of pixels beside `out`, as long as it is needed.

    how: side, fit, border and what else decoding was told. Files that are absent or broken are told; raises
    BadInput if all are.
    """
    with TemporaryDirectory(prefix=".", dir=out.parent) as folder:
        array, side = Path(folder, "images.npy"), how["side"]
        check_space(array, len(images) * side**2 * 3)
        pixels = np.lib.format.open_memmap(array, "w+", np.uint8, (len(images), side, side, 3))
        done = filled(pixels, list(images["file"]), how, CPUS, "decode")
        named_so = images.assign(id=places(images))
        absent = list(named_so["id"][[found is None for found in done]])
        wrong = [f"{counted(len(absent), 'file', 'are')} absent: {few(absent, shown=3)}"] if absent else []
        good = np.array([isinstance(found, tuple) for found in done])
        if (wrong := wrong + damaged(named_so, done)) and not good.any():
            raise BadInput(f"{file}: {'; '.join(wrong)}")
        if wrong:
            print(f"{file}: {'; '.join(wrong)}; they are not answered", file=sys.stderr)
        pixels.flush()
        yield images[good], array
