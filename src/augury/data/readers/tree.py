"""Images in a directory: which files there are, of which class, and what is not read."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from augury._base.errors import AuguryError
from augury._base.text import flat, listed
from augury.data.readers.images import EXTENSIONS

_TRAIN = ("train", "training")
_TEST = ("test", "testing", "val", "valid", "validation")
_IGNORED = ("thumbs.db", "desktop.ini", "__macosx")  # what Windows and macOS leave behind


@dataclass(frozen=True)
class Tree:
    """Images in the order of their classes, with class numbers; `names` is None for loose ones."""

    files: list[Path]
    y: list[int]
    names: list[str] | None
    notes: list[str]


@dataclass
class _Found:
    """What lies in one directory and below it."""

    images: list[Path] = field(default_factory=list)
    deeper: int = 0
    others: Counter[str] = field(default_factory=Counter)


def find_images(path: Path, shown: str, *, new: bool = False) -> Tree:
    """List the images of each class; those in deeper directories belong to the top one's class.

    A directory with ``train`` beside ``val`` or ``test`` is read there, and `new` images from
    ``test`` or ``val``. Loose images have no class, which only new ones need not have.
    """
    folders = _folders(path)
    part = _part(path, folders, new)
    if part is not None:
        tree = find_images(path / part, f"{shown}/{part}", new=new)
        others = [folder for folder in folders if folder != part]
        note = f"{part}/ was read" + (f", and {listed(others)} not" if others else "")
        return Tree(tree.files, tree.y, tree.names, [note, *tree.notes])
    loose = _search(path, deep=False)
    found = {folder: _search(path / folder) for folder in folders}
    names = [folder for folder in folders if found[folder].images]
    if not names:
        if loose.images and new:
            return Tree(loose.images, [], None, _unread(loose.others))
        raise _nothing(path, shown, loose, folders, found)
    if {"images", "labels"} <= set(folders):
        raise AuguryError(
            f"{flat(shown)} has images/ and labels/, as data for object detection has; expected "
            f"one sub-directory per class, as {flat(path / 'cat' / '1.png')}"
        )
    notes = []
    if loose.images:
        notes.append(f"{len(loose.images):,} images outside of the class directories were left out")
    if len(names) < len(folders):
        empty = [folder for folder in folders if not found[folder].images]
        notes.append(f"directories without images were left out: {listed(empty, 5)}")
    deeper = sum(found[name].deeper for name in names)
    files = [file for name in names for file in found[name].images]
    if deeper:
        notes.append(
            f"{deeper:,} of {len(files):,} images lie in deeper directories, and were given the "
            "class of the top one"
        )
    notes += _unread(sum((part.others for part in found.values()), loose.others))
    y = [k for k, name in enumerate(names) for _ in found[name].images]
    return Tree(files, y, names, notes)


def _part(path: Path, folders: list[str], new: bool) -> str | None:
    """Return the sub-directory of a train/val/test layout that is to be read, if it is one."""
    lower = {folder.lower(): folder for folder in folders}
    if not any(name in lower for name in _TRAIN) or not set(lower) <= {*_TRAIN, *_TEST}:
        return None
    wanted = (*_TEST, *_TRAIN) if new else _TRAIN
    part = next(lower[name] for name in wanted if name in lower)
    inside = path / part
    return part if any(_search(inside / f).images for f in _folders(inside)) else None


def _search(folder: Path, *, deep: bool = True) -> _Found:
    """Find the images below a directory, sorted by their paths; links are followed once."""
    found = _Found()
    seen: set[str] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        real = os.path.realpath(here)
        if real in seen:
            continue
        seen.add(real)
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.name.startswith(".") or entry.name.lower() in _IGNORED:
                    continue
                if entry.is_dir():
                    waiting += [here / entry.name] if deep else []
                elif entry.is_file() or entry.is_symlink():
                    suffix = os.path.splitext(entry.name)[1].lower()
                    if suffix in EXTENSIONS and entry.is_file():
                        found.images.append(here / entry.name)
                        found.deeper += here != folder
                    else:
                        found.others[suffix or "without suffix"] += 1
    found.images.sort(key=lambda file: file.parts)
    return found


def _unread(others: Counter[str]) -> list[str]:
    """Say how many files are no images that can be read, by their suffixes."""
    if not others:
        return []
    total = sum(others.values())
    common = sorted(others.items(), key=lambda item: (-item[1], item[0]))
    kinds = [f"{count:,} {flat(suffix)}" for suffix, count in common]
    what = "file was" if total == 1 else "files were"
    photos = sorted(others.keys() & {".heic", ".heif", ".avif"})
    hint = f"; convert {listed(photos)} to .jpg or .png" if photos else ""
    return [f"{total:,} {what} not read: {listed(kinds, 6)}{hint}"]


def _folders(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(
            e.name
            for e in entries
            if e.is_dir() and not e.name.startswith(".") and e.name.lower() not in _IGNORED
        )


def _nothing(
    path: Path, shown: str, loose: _Found, folders: list[str], found: dict[str, _Found]
) -> AuguryError:
    """Say that no image has a class."""
    expected = f"expected one sub-directory of images per class, as {flat(path / 'cat' / '1.png')}"
    others = _unread(sum((part.others for part in found.values()), loose.others))
    said = f" ({others[0]})" if others else ""
    if loose.images:
        return AuguryError(
            f"{flat(shown)} holds {len(loose.images):,} loose images without class directories; "
            f"{expected}"
        )
    if not folders:
        return AuguryError(f"the directory {flat(shown)} has no images{said}; {expected}")
    read = " ".join(EXTENSIONS)
    return AuguryError(
        f"the directories in {flat(shown)} have no images ({read}){said}; {expected}"
    )
