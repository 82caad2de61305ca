"""Mutations of bytes and of text that know nothing of their format."""

from __future__ import annotations

import random

NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63)

WORDS = (
    "", " ", "nan", "NaN", "inf", "-inf", "1e999", "-1e999", "1e308", "1e-320", "9" * 400, "0" * 90,
    "-0", "0x10", "1_000", "True", "None", "null", '"', '""', "'", "\\", "\0", "\ufeff", "é", "😀",
    "\u202e", "a" * 5000, "1,5", "2024-01-01", "1 2", "=1+1", "../../etc/passwd", "~nobody/x",
    "/dev/zero", "{}", "[]", "%s", "\t", "\r", "\n", "\x1b[31m", "cat.png", "3+4j", "1e", ".", "-",
)  # fmt: skip


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change a few places of some bytes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if not out:
            return rng.randbytes(rng.randrange(64))
        at, size = rng.randrange(len(out)), rng.choice((1, 2, 4, 8, 32, 256))
        how = rng.randrange(8)
        if how == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif how == 2:  # a number of 4 or 8 bytes
            width = rng.choice((1, 2, 4, 8))
            number = rng.choice(NUMBERS) % (1 << 8 * width)
            out[at : at + width] = number.to_bytes(width, rng.choice(("big", "little")))
        elif how == 3:
            del out[at : at + size]
        elif how == 4:
            out[at:at] = rng.randbytes(size)
        elif how == 5:
            out[at:at] = out[at : at + size]
        elif how == 6:
            del out[at:]
        else:
            other = rng.randrange(len(out))
            out[at : at + size], out[other : other + size] = (
                out[other : other + size],
                out[at : at + size],
            )
    return bytes(out)


def mutate_text(text: str, rng: random.Random, words: tuple[str, ...] = WORDS) -> str:
    """Change a few places of a text: characters, and whole words from a list."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(text) + 1)
        size = rng.choice((0, 1, 1, 3, 12))
        text = text[:at] + rng.choice((*words, *text[:20])) + text[at + size :]
    return text
