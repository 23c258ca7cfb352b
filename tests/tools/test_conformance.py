"""docs/conformance.md tells which tests there are."""

import importlib.machinery
import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/conformance"


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """The tool as a module, with a list of two rows, both tested, and a page that says so."""
    loader = importlib.machinery.SourceFileLoader("conformance", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("conformance", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "ROWS", tmp_path / "rows.tsv")
    monkeypatch.setattr(module, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(module, "system_tests", lambda is_run: [(["H2"], True), (["H2", "K1"], False)])
    monkeypatch.setattr(module, "unit_tests", lambda is_run: [])
    module.ROWS.write_text("row\tspecification\tsent\trequired\nK1\tRFC 1928 3\ta\tb\nH2\tRFC 9112 3\tc\td\n")
    assert module.main([]) == 1
    return module


def refusal(tool):
    with pytest.raises(SystemExit) as end:
        tool.main(["--check"])
    return end.value.code


def test_the_page_lists_every_row_and_as_many_tests_as_there_are():
    result = subprocess.run([TOOL, "--check"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


def test_rows_are_in_their_order_with_what_was_run_and_what_passed(tool):
    rows = tool.PAGE.read_text().splitlines()[-2:]
    assert rows == ["| H2 | RFC 9112 3 | c | d | 2 | 1 |", "| K1 | RFC 1928 3 | a | b | 1 | 0 |"]


def test_a_page_with_other_results_is_not_stale(tool):
    tool.PAGE.write_text(re.sub(r"1 \|$", "2 |", tool.PAGE.read_text(), flags=re.M))
    assert tool.main(["--check"]) == 0


@pytest.mark.parametrize("tests, complaint", [
    ([(["H2"], True)], "conformance: no test for K1"),
    ([(["H2"], True), (["K1"], True), (["H3"], True)], "conformance: rows.tsv does not have H3"),
    ([(["H2"], True), (["K1"], True)], "conformance: page.md is out of date: run tools/conformance")])
def test_what_does_not_fit_the_list_is_noticed(tool, monkeypatch, tests, complaint):
    monkeypatch.setattr(tool, "system_tests", lambda is_run: tests)
    assert refusal(tool) == complaint


def test_a_unit_test_names_its_rows_behind_its_line(tool):
    source = """\
\t    cmocka_unit_test(test_one), /* H1 */
\t    TEST(test_two),             /* H1 H22 */
\t    cmocka_unit_test_setup(test_three, begin), /* K1 */
\t    cmocka_unit_test(test_four), /* a remark */
\t    cmocka_unit_test(test_five),
"""
    assert tool.UNIT_TEST.findall(source) == [("test_one", "H1 "), ("test_two", "H1 H22 "), ("test_three", "K1 ")]
