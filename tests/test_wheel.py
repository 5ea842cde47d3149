"""What a user installs: a wheel has all that the commands need, results included."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rewardlab.registry import catalogue

pytest.importorskip("setuptools", minversion="70.1", reason="builds the wheel without a network")
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder into which the wheel of this checkout is unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    # copied, since setuptools writes beside what it builds
    shutil.copytree(ROOT / "src", folder / "source" / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    build = "import setuptools.build_meta as b; print(b.build_wheel('..'))"
    subprocess.run([sys.executable, "-c", build], cwd=folder / "source", check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.mark.slow
def test_a_wheel_knows_every_method_and_its_verdict(installed, tmp_path):
    env = {**os.environ, "PYTHONPATH": str(installed), "REWARDLAB_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "rewardlab", "list", "--json"], env=env, capture_output=True, text=True, cwd=tmp_path
    )
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    here = ROOT / "src" / "rewardlab"
    assert rows.keys() == {path.stem for path in here.glob("methods/*/[!_]*.py")}
    recorded = [path.stem for path in (here / "results").glob("*.json")]
    assert len(recorded) > 30
    # as this checkout knows them
    known = {row["name"]: row["verdict"] for row in catalogue.rows()}
    assert {name: rows[name]["verdict"] for name in recorded} == {name: known[name] for name in recorded}
    assert {"holds", "sanity"} & {known[name] for name in recorded}


@pytest.mark.slow
def test_a_wheel_has_every_file_of_the_package(installed):
    def files(root: Path) -> set[str]:
        return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts}

    assert files(ROOT / "src" / "rewardlab") - files(installed / "rewardlab") == set()
