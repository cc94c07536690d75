"""Splits and cuts that do not depend on the order of the rows.

A digest of each row and a seed decides which rows are taken. So a larger cut contains a smaller one, and rows
that are added elsewhere change nothing.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

from tailprompt.errors import BadInput, counted

FLOOR = 2  # rows of each class that a proportional cut keeps, or all it has


def stratified(table: pd.DataFrame, name: str, *, shares: dict[str, float], seed: int, alone: str):
    """The table with `shares` of each class of its training rows moved to the missing splits.

    table: label (str), split, and text (or id only). shares: those of the missing splits, as {"dev": 0.1}. If
    a class has fewer rows than splits, test comes first and dev last. A class with one example is refused, or
    kept in train if `alone` is "train".
    """
    check_shares(shares, name)
    table = table.copy()
    keys = table["text"] + "\0" + table.get("pair", "") if "text" in table else table["id"]
    order = ranked(table.assign(key=keys)[table["split"] == "train"], seed)
    classes = order.groupby("label").groups  # label -> rows, in that order
    single = sorted(label for label, members in classes.items() if len(members) == 1)
    if single and alone != "train":
        shown = ", ".join(label or "no entity" for label in single[:5])
        raise BadInput(
            f"'{name}': {counted(len(single), 'class')} of one example ({shown}) cannot be split "
            f"into train, {', '.join(shares)}; add some, merge classes, give a split column, or set "
            "singletons: train"
        )
    for members in classes.values():
        for split, n in parted(len(members), shares).items():
            table.loc[members[:n], "split"] = split
            members = members[n:]
    if empty := [split for split in shares if not (table["split"] == split).any()]:
        raise BadInput(
            f"'{name}': no class has a row for {' and '.join(empty)}; the largest has "
            f"{counted(max(map(len, classes.values()), default=0), 'row')}, and to be in train, dev and test "
            "it takes 3"
        )
    return table


def parted(total: int, shares: dict[str, float]) -> dict[str, int]:
    """How many rows of a class of `total` go to each missing split: test before dev, and train keeps one."""
    left, found = total, {}
    for split in sorted(shares, reverse=True):
        found[split] = min(left - 1, max(1, round(shares[split] * total)))
        left -= found[split]
    return found


def together(table: pd.DataFrame, name: str, *, by: str, shares: dict[str, float], seed: int):
    """The table with about `shares` of its training rows moved to the missing splits.

    by: the column of what stays together, as all questions of an article; one after the other is moved, in
    the order of the digests, until a split has its share. shares: those of the missing splits.
    """
    check_shares(shares, name)
    train = table[table["split"] == "train"]
    sizes = train.groupby(by, sort=True).size()
    order = ranked(pd.DataFrame({"id": sizes.index.astype(str), "rows": sizes.to_numpy()}), seed)
    if len(order) <= len(shares):
        raise BadInput(
            f"'{name}': train has {counted(len(order), 'group')} of rows that stay together, too few to make "
            f"{' and '.join(shares)} of them; give a file for each split"
        )
    table, at, parts = table.copy(), 0, {}
    for number, split in enumerate(sorted(shares, reverse=True)):  # test before dev
        begun, rows = at, 0
        while rows < shares[split] * len(train) and at < len(order) - len(shares) + number or at == begun:
            rows, at = rows + order["rows"].iloc[at], at + 1
        parts |= dict.fromkeys(order["id"].iloc[begun:at], split)
    moved = train[by].astype(str).map(parts).dropna()
    table.loc[moved.index, "split"] = moved
    return table


def check_shares(shares: dict[str, float], name: str) -> None:
    """Raise BadInput unless every split gets some rows and train keeps some."""
    if sum(shares.values()) >= 1 or min(shares.values()) <= 0:
        raise BadInput(f"'{name}': shares must be above 0 and leave some to train, not {shares}")


def ranked(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Rows sorted by the digest of the seed and their `key` (or id)."""
    keys = table["key"] if "key" in table else table["id"]
    digests = [hashlib.sha256(f"{seed}\0{key}".encode()).digest() for key in keys]
    order = list(zip(digests, table["id"], strict=True))
    return table.iloc[sorted(range(len(order)), key=order.__getitem__)]


def cut(table: pd.DataFrame, changes: dict, classes: int, *, draw: str = "digest") -> pd.DataFrame:
    """A smaller data set, with the rows in their old order.

    train, dev, test: the number of rows of a split, in proportion to the classes, with at least two of each
    class or all it has. shots: the number of rows of each class in train and in dev, or all it has. total:
    the number of rows of train and of dev, evenly from the classes (PPT, section 2). imbalance: training
    counts fall exponentially, from the largest class to 1/imbalance of it (Cui et al. 2019, section 5.1), or
    as in `ldam` if that is the draw. sample: the seed (0).
    """
    wrong = {k: v for k, v in changes.items() if isinstance(v, str) or v < (k != "sample")}
    if wrong:
        raise BadInput(f"a cut takes numbers from 1 (sample: from 0), not {wrong}")
    seed = changes.get("sample", 0)
    if draw == "ldam" and "imbalance" in changes:
        table = ldam(table, changes["imbalance"], classes, seed)
        changes = {key: value for key, value in changes.items() if key != "imbalance"}
    for split in ("train", "dev", "test"):
        counts = (
            table.loc[table["split"] == split, "label"].value_counts().reindex(range(classes), fill_value=0)
        )
        wanted = quota(list(counts), split, changes)
        if wanted is not None:
            table = take(table, split, wanted, seed)
    return table


def quota(counts: list[int], split: str, changes: dict) -> list[int] | None:
    """The number of rows of each class that a cut keeps in a split; None keeps all."""
    if split in changes:
        return proportional(counts, changes[split], split)
    if "shots" in changes and split != "test":
        return [min(n, changes["shots"]) for n in counts]
    if "total" in changes and split != "test":
        return even(counts, changes["total"])
    if "imbalance" in changes and split == "train":
        return exponential(counts, changes["imbalance"])
    return None


def proportional(counts: list[int], total: int, split: str) -> list[int]:
    """`total` rows: FLOOR of each class, the rest by largest remainder (ties: the smaller class id)."""
    least = floors(counts)
    if not sum(least) <= total <= sum(counts):
        present = sum(1 for n in counts if n)
        raise BadInput(
            f"{split}={total} is not possible: {counted(present, 'class')} with {FLOOR} rows each or all "
            f"there are need {sum(least)}, and there are {sum(counts)}"
        )
    spare = [n - floor for n, floor in zip(counts, least, strict=True)]
    left = total - sum(least)
    exact = [left * n / max(1, sum(spare)) for n in spare]
    whole = [int(x) for x in exact]
    ids = sorted(range(len(counts)), key=lambda c: (whole[c] - exact[c], c))
    for c in ids[: left - sum(whole)]:
        whole[c] += 1
    return [floor + n for floor, n in zip(least, whole, strict=True)]


def floors(counts: list[int]) -> list[int]:
    """The rows of each class that a proportional cut keeps at least."""
    return [min(n, FLOOR) for n in counts]


def even(counts: list[int], total: int) -> list[int]:
    """`total` rows, or all there are, one of each class in turn; a class without rows left is skipped."""
    if total < (present := sum(n > 0 for n in counts)):
        raise BadInput(f"total={total} is less than the {counted(present, 'class')}; each needs a row")
    kept = [0] * len(counts)
    for _ in range(min(total, sum(counts))):
        c = min((c for c, n in enumerate(counts) if kept[c] < n), key=lambda c: kept[c])
        kept[c] += 1
    return kept


def exponential(counts: list[int], ratio: float) -> list[int]:
    """n_max * ratio^(-rank / (classes - 1)), at least 1; n_max is the largest that all classes allow."""
    if ratio > max(counts):
        raise BadInput(
            f"imbalance={ratio} is not possible: the largest class has "
            f"{counted(max(counts), 'training row')}, and the smallest keeps one"
        )
    present = sorted((c for c, n in enumerate(counts) if n), key=lambda c: -counts[c])
    shares = [ratio ** (-rank / max(1, len(present) - 1)) for rank in range(len(present))]
    largest = min(counts[c] / share for c, share in zip(present, shares, strict=True))
    kept = [0] * len(counts)
    for c, share in zip(present, shares, strict=True):
        kept[c] = min(counts[c], max(1, round(largest * share)))
    return kept


def ldam(table: pd.DataFrame, ratio: float, classes: int, seed: int) -> pd.DataFrame:
    """CIFAR100-LT as in most papers: training counts fall in class order, rows are drawn as in LDAM's code.

    Class c keeps n_max * ratio^(-c / (classes - 1)) rows, rounded down, where n_max is the mean class size
    (Cao et al. 2019, section 4). The rows of each class, in table order, are shuffled by numpy's legacy
    generator, class after class, and the first are kept.
    """
    chance, train = np.random.RandomState(seed), table["split"] == "train"
    kept = [table.index[~train]]
    for c in range(classes):
        rows = table.index[train & (table["label"] == c)].to_numpy(copy=True)
        chance.shuffle(rows)
        kept.append(rows[: int(train.sum() / classes * (1 / ratio) ** (c / (classes - 1)))])
    if empty := sum(1 for rows in kept[1:] if not len(rows)):
        raise BadInput(
            f"imbalance={ratio:g} leaves {counted(empty, 'class')} without a training row; as drawn by "
            "LDAM's code it "
            f"goes up to the mean of the classes, {counted(int(train.sum() / classes), 'row')}"
        )
    return table[table.index.isin(np.concatenate(kept))]


def take(table: pd.DataFrame, split: str, wanted: list[int], seed: int) -> pd.DataFrame:
    """Keep `wanted` rows of each class of a split, the first by digest."""
    rows = ranked(table[table["split"] == split], seed)
    place = rows.groupby("label").cumcount()
    kept = rows.index[place < rows["label"].map(pd.Series(wanted))]
    return table[(table["split"] != split) | table.index.isin(kept)]
