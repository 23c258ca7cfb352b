"""The model of the leases' life, in its smallest configuration: it holds, and fails without the comparison of tokens."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_model_of_a_lease_holds_and_its_mutant_fails_as_the_page_says():
    done = subprocess.run([ROOT / "tools/model", "--quick"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    assert len(rows) == 2
    assert set(rows) <= set((ROOT / "docs/model.md").read_text().splitlines())
