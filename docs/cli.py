"""Write docs/cli.md: the help of every command, as `augury COMMAND --help` prints it.

python docs/cli.py
"""

import subprocess
import sys
from pathlib import Path

HEAD = """# The command line

The same texts are printed by `augury --help` and `augury COMMAND --help`. A command exits with
0 on success, 2 if the input was wrong (one line on standard error says what was expected), 130 if
it was interrupted, and 1 if the program reading its output closed the pipe. Files are written whole
or not at all.
"""

if __name__ == "__main__":
    made = subprocess.run(
        [sys.executable, "-m", "typer", "augury.cli.app", "utils", "docs", "--name", "augury"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    body = made.split("\n", 1)[1].lstrip("\n")  # without its title
    lines = (HEAD + "\n" + body).splitlines()
    text = "\n".join(line.rstrip() for line in lines).rstrip() + "\n"
    (Path(__file__).parent / "cli.md").write_text(text, encoding="utf-8")
