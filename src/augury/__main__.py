"""``python -m augury``."""

from augury.cli.main import main

main()
