"""Mutated input, seeded: nothing but one clear line may come of it.

``python -m tests.fuzz --what files --count 3000 --seed 0`` from the repository's root.
"""
