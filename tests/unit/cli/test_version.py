import subprocess
import sys
from importlib.metadata import version

from typer.testing import CliRunner

import recollect
from recollect.cli import app


def test_command_package_and_distribution_say_the_same_version() -> None:
    ended = CliRunner().invoke(app, ["--version"])
    assert ended.exit_code == 0
    assert ended.output == f"recollect {recollect.__version__}\n"
    assert recollect.__version__ == version("recollect")


def test_the_package_can_be_run_as_a_module() -> None:
    command = [sys.executable, "-m", "recollect", "--version"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ended.stdout == f"recollect {recollect.__version__}\n"
