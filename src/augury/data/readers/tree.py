"""The files in a directory, their classes, and the files that are not read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from augury._base.errors import AuguryError
from augury._base.text import flat, listed
from augury.data.readers.images import EXTENSIONS
from augury.data.readers.recordings import SOUNDS

TRAIN = ("train", "training")
TEST = ("test", "testing", "val", "valid", "validation")
_IGNORED = ("thumbs.db", "desktop.ini", "__macosx")  # what Windows and macOS leave behind


@dataclass(frozen=True)
class Media:
    """What files hold, the names that they end in, and one as an example."""

    noun: str
    extensions: tuple[str, ...]
    example: str


IMAGES = Media("image", EXTENSIONS, "cat/1.png")
RECORDINGS = Media("recording", SOUNDS, "yes/1.wav")


@dataclass(frozen=True)
class Tree:
    """Files in the order of their classes, with class numbers; `names` is None for loose ones."""

    files: list[Path]
    y: list[int]
    names: list[str] | None
    notes: list[str]
    media: Media


@dataclass
class _Found:
    """What lies in one directory and below it."""

    files: list[Path] = field(default_factory=list)
    deeper: int = 0
    others: Counter[str] = field(default_factory=Counter)


def find_files(path: Path, shown: str, *, new: bool = False) -> Tree:
    """List the images of each class, or the recordings where there are more of them.

    Those in deeper directories belong to the top one's class. A directory with ``train`` beside
    ``val`` or ``test`` is read there, and `new` files from ``test`` or ``val``. Loose files have
    no class, which only new ones need not have.
    """
    listing = _Listing()
    counts = _suffixes(path, listing)
    images, sounds = (sum(counts[e] for e in m.extensions) for m in (IMAGES, RECORDINGS))
    return _find(path, shown, RECORDINGS if sounds > images else IMAGES, new, listing)


def _find(path: Path, shown: str, media: Media, new: bool, listing: _Listing) -> Tree:
    folders, nouns = _folders(path, listing), f"{media.noun}s"
    part = _part(path, folders, media, new, listing)
    if part is not None:
        tree = _find(path / part, f"{shown}/{part}", media, new, listing)
        others = [folder for folder in folders if folder != part]
        note = f"{part}/ was read" + (f", but not {listed(others)}" if others else "")
        return replace(tree, notes=[note, *tree.notes])
    loose = _search(path, media, listing, deep=False)
    found = {folder: _search(path / folder, media, listing) for folder in folders}
    names = [folder for folder in folders if found[folder].files]
    if not names:
        if loose.files and new:
            return Tree(loose.files, [], None, _unread(loose.others), media)
        raise _nothing(path, shown, media, loose, folders, found)
    if media is IMAGES and {"images", "labels"} <= set(folders):
        raise AuguryError(
            f"{flat(shown)} has images/ and labels/, like data for object detection; expected "
            f"one sub-directory per class, such as {flat(path / 'cat' / '1.png')}"
        )
    notes = []
    if loose.files:
        notes.append(f"{len(loose.files):,} {nouns} outside of the class directories were left out")
    if len(names) < len(folders):
        empty = [folder for folder in folders if not found[folder].files]
        notes.append(f"directories without {nouns} were left out: {listed(empty, 5)}")
    deeper = sum(found[name].deeper for name in names)
    files = [file for name in names for file in found[name].files]
    if deeper:
        notes.append(
            f"{deeper:,} of {len(files):,} {nouns} are in nested directories and belong to the "
            "class of the top-level directory"
        )
    notes += _unread(sum((part.others for part in found.values()), loose.others))
    y = [k for k, name in enumerate(names) for _ in found[name].files]
    return Tree(files, y, names, notes, media)


class _Listing:
    """Directories as they were listed, each once: a listing says what is a file without `stat`."""

    def __init__(self) -> None:
        self._known: dict[str, list[os.DirEntry[str]]] = {}

    def entries(self, folder: Path) -> list[os.DirEntry[str]]:
        """Return the entries of a directory by name, without hidden and system files."""
        known = self._known.get(str(folder))
        if known is None:
            with os.scandir(folder) as found:
                known = [e for e in found if not e.name.startswith(".")]
            known = [e for e in known if e.name.lower() not in _IGNORED]
            self._known[str(folder)] = known = sorted(known, key=lambda e: e.name)
        return known


def _suffixes(path: Path, listing: _Listing) -> Counter[str]:
    """Count the files below a directory by what their names end in; links are followed once."""
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    waiting = [path]
    while waiting:
        here = waiting.pop()
        real = os.path.realpath(here)
        if real in seen:
            continue
        seen.add(real)
        for entry in listing.entries(here):
            if _holds(entry.is_dir):
                waiting.append(here / entry.name)
            else:
                counts[os.path.splitext(entry.name)[1].lower()] += 1
    return counts


def _part(path: Path, folders: list[str], media: Media, new: bool, listing: _Listing) -> str | None:
    """Return the sub-directory of a train/val/test layout that is to be read, if it is one."""
    lower = {folder.lower(): folder for folder in folders}
    if not any(name in lower for name in TRAIN) or not set(lower) <= {*TRAIN, *TEST}:
        return None
    wanted = (*TEST, *TRAIN) if new else TRAIN
    part = next(lower[name] for name in wanted if name in lower)
    inside = path / part
    below = (_search(inside / folder, media, listing) for folder in _folders(inside, listing))
    return part if any(found.files for found in below) else None


def _search(folder: Path, media: Media, listing: _Listing, *, deep: bool = True) -> _Found:
    """Find the files of a kind below a directory, sorted by path; links are followed once."""
    found = _Found()
    seen: set[str] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        real = os.path.realpath(here)
        if real in seen:
            continue
        seen.add(real)
        for entry in listing.entries(here):
            if _holds(entry.is_dir):
                waiting += [here / entry.name] if deep else []
            elif _holds(entry.is_file) or entry.is_symlink():
                suffix = os.path.splitext(entry.name)[1].lower()
                if suffix in media.extensions and _holds(entry.is_file):
                    found.files.append(here / entry.name)
                    found.deeper += here != folder
                else:
                    found.others[suffix or "without suffix"] += 1
    found.files.sort(key=lambda file: file.parts)
    return found


def _holds(ask: Callable[[], bool]) -> bool:
    """Ask what an entry is; a link that leads to itself is nothing."""
    try:
        return ask()
    except OSError:
        return False


def _unread(others: Counter[str]) -> list[str]:
    """Return how many files are of another kind, by suffix."""
    if not others:
        return []
    total = sum(others.values())
    common = sorted(others.items(), key=lambda item: (-item[1], item[0]))
    kinds = [f"{count:,} {flat(suffix)}" for suffix, count in common]
    what = "file was" if total == 1 else "files were"
    photos = sorted(others.keys() & {".heic", ".heif", ".avif"})
    hint = f"; convert {listed(photos)} to .jpg or .png" if photos else ""
    return [f"{total:,} {what} not read: {listed(kinds, 6)}{hint}"]


def _folders(folder: Path, listing: _Listing) -> list[str]:
    return [entry.name for entry in listing.entries(folder) if _holds(entry.is_dir)]


def _nothing(
    path: Path,
    shown: str,
    media: Media,
    loose: _Found,
    folders: list[str],
    found: dict[str, _Found],
) -> AuguryError:
    """Return an error for files without classes."""
    nouns = "images or recordings" if media is IMAGES and not loose.files else f"{media.noun}s"
    example = flat(path / media.example)
    expected = f"expected one sub-directory of {nouns} per class, such as {example}"
    others = _unread(sum((part.others for part in found.values()), loose.others))
    said = f" ({others[0]})" if others else ""
    if loose.files:
        return AuguryError(
            f"{flat(shown)} holds {len(loose.files):,} loose {nouns} without class directories; "
            f"{expected}"
        )
    if not folders:
        return AuguryError(f"the directory {flat(shown)} has no {nouns}{said}; {expected}")
    read = " ".join((*EXTENSIONS, *SOUNDS))
    return AuguryError(
        f"the directories in {flat(shown)} have no {nouns} ({read}){said}; {expected}"
    )
