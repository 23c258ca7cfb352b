"""The checks check: each is run on a small tree that breaks one rule."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def run(tool, *arguments, **environment):
    return subprocess.run(
        [TOOLS / tool, *arguments], env=os.environ | environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60,
    )


@pytest.fixture
def tree(tmp_path):
    """write(path, text) below an empty root; a source gets its first line and its line in meson.build."""

    class Tree:
        root = tmp_path

        def write(self, path, text):
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            return file

        def source(self, path, text=""):
            self.write(f"src/{path}", f"/* {Path(path).name} - a test. */\n{text}")
            if path.endswith(".c"):
                with open(self.root / "src" / Path(path).parent / "meson.build", "a") as build:
                    build.write(f"'{Path(path).name}',\n")

        def layers(self):
            return run("check_layers", self.root)

        def budget(self):
            return run("check_budget", self.root)

    return Tree()


# check_layers


def test_layers_accept_the_left_and_the_own_folder(tree):
    tree.source("base/log.h")
    tree.source("base/log.c", '#include "base/log.h"\n#include <openssl/hmac.h>\n')
    tree.source("store/reply.h", "#include <hiredis/hiredis.h>\n")
    tree.source("pool/pool.c", '#include "store/reply.h"\n#include "base/log.h"\n#include "pool/pool.h"\n')
    tree.source("cli/main.c", '#include "node/node.h"\n#include "tables/command.def"\n')
    result = tree.layers()
    assert (result.returncode, result.stdout) == (0, "layers: 5 files, 0 faults\n")


@pytest.mark.parametrize(
    "path, include, complaint",
    [
        ("base/log.c", '"pool/pool.h"', "pool is to the right of base"),
        ("base/log.h", '"store/reply.h"', "store is to the right of base"),
        ("dial/http.c", '"store/reply.h"', "store is a sibling of dial"),
        ("pool/pool.c", '"queue/push.h"', "queue is a sibling of pool"),
        ("gateway/relay.c", '"check/probe.h"', "check is a sibling of gateway"),
        ("node/keeper.c", '"cli/main.h"', "cli is to the right of node"),
        ("pool/pool.c", '"../base/log.h"', "write the path from src"),
        ("pool/pool.c", "<hiredis/hiredis.h>", "hiredis is included in store/ alone"),
        ("dial/http.c", "<curl/curl.h>", "libcurl is included in fetch/ alone"),
        ("store/url.c", "<openssl/sha.h>", "OpenSSL is included in base/ alone"),
        ("list/lines.c", "<event2/event.h>", "a pure parser has no libevent"),
        ("base/http_fields.c", "<event2/buffer.h>", "a pure parser has no libevent"),
        ("base/address.c", "<event2/util.h>", "a pure parser has no libevent"),
        ("base/endpoint_parse.c", "<event.h>", "a pure parser has no libevent"),
        ("misc/odd.c", '"base/log.h"', "'misc' is no layer"),
    ],
)
def test_layers_refuse(tree, path, include, complaint):
    tree.source(path, f"\n#include {include}\n")
    result = tree.layers()
    assert result.returncode == 1
    assert complaint in result.stdout
    assert result.stdout.startswith(f"src/{path}:{1 if 'no layer' in complaint else 3}: ")


def test_layers_follow_headers_to_libevent(tree):
    tree.source("base/stream.h", "#include <event2/event.h>\n")
    tree.source("base/limits.h", '#include "base/stream.h"\n')
    tree.source("list/lines.c", '#include "base/limits.h"\n')
    result = tree.layers()
    assert result.returncode == 1
    assert "src/list/lines.c:2: <event2/event.h>: a pure parser has no libevent (through base/stream.h)" in result.stdout


def test_layers_demand_a_first_line(tree):
    tree.write("src/base/log.h", "/* other.h - a test. */\n")
    result = tree.layers()
    assert result.returncode == 1
    assert "src/base/log.h:1: the first line must begin with `/* log.h - `" in result.stdout


def test_layers_miss_a_source_that_is_not_built(tree):
    tree.source("base/log.c")
    tree.write("src/base/clock.c", "/* clock.c - a test. */\n")
    result = tree.layers()
    assert result.returncode == 1
    assert "src/base/clock.c:1: src/base/meson.build does not name it" in result.stdout
    assert "1 faults" in result.stdout


def test_layers_miss_a_script_and_a_unit_test_that_are_not_built(tree):
    tree.source("base/log.c")
    tree.write("lua/place.lua", "-- KEYS: 1\n")
    tree.write("tests/unit/test_log.c", "")
    result = tree.layers()
    assert result.returncode == 1
    assert "lua/place.lua:1: src/store/meson.build does not name it" in result.stdout
    assert "tests/unit/test_log.c:1: tests/unit/meson.build does not name it" in result.stdout


def test_layers_of_an_empty_tree_are_an_error(tree):
    assert tree.layers().returncode == 2


# check_budget


def function(name, length):
    """Text of a function that has `length` lines from brace to brace."""
    return f"int {name}(void)\n{{\n" + "\tstep();\n" * (length - 2) + "}\n\n"


def test_budget_reports_median_percentile_and_longest(tree):
    tree.source("base/log.c", "".join(function(f"f{n}", n) for n in range(3, 13)))
    result = tree.budget()
    assert result.returncode == 0
    assert "10 functions, median 7 lines, 90th percentile 11, longest 12" in result.stdout


def test_budget_accepts_eighty_lines_and_names_a_function_with_more(tree):
    short = "".join(function(f"f{n}", 5) for n in range(20))
    tree.source("base/log.c", short + function("just", 80))
    assert tree.budget().returncode == 0
    tree.source("base/conf.c", function("conf_read", 81))
    result = tree.budget()
    assert result.returncode == 1
    assert "src/base/conf.c:3: conf_read has 81 lines, at most 80" in result.stdout
    assert "just" not in result.stdout.splitlines()[0]


def test_budget_refuses_a_median_over_fifteen(tree):
    tree.source("base/log.c", function("a", 16) + function("b", 16) + function("c", 3))
    result = tree.budget()
    assert result.returncode == 1
    assert "the median function has 16 lines, at most 15" in result.stdout


def test_budget_refuses_more_than_one_function_in_ten_over_forty(tree):
    tree.source("base/log.c", "".join(function(f"f{n}", 5) for n in range(8)) + function("x", 41) + function("y", 42))
    result = tree.budget()
    assert result.returncode == 1
    assert "90th percentile 41" in result.stdout
    assert "y has 42 lines" in result.stdout


def test_budget_refuses_a_source_over_five_hundred_lines(tree):
    text = function("f", 5)
    tree.source("base/log.c", text + "\n" * (500 - 1 - text.count("\n")))
    assert tree.budget().returncode == 0
    tree.source("base/log.c", text + "\n" * (501 - 1 - text.count("\n")))
    result = tree.budget()
    assert result.returncode == 1
    assert "src/base/log.c:501: has 501 lines, at most 500" in result.stdout


def test_budget_of_an_empty_tree_is_an_error(tree):
    assert tree.budget().returncode == 2


# embed_lua

SCRIPT_H = """
#include <stddef.h>
#include "script_ids.gen.h"
struct script { const char *name; const char *source; size_t source_len; const char *sha1; int keys; };
extern const struct script scripts[SCRIPT_COUNT];
"""
DUMP_C = r"""
#include <stdio.h>
#include "store/script.h"
int main(void)
{
	const struct script *s = &scripts[SCRIPT_SECOND];
	printf("%d %d %s %s %d\n", SCRIPT_COUNT, SCRIPT_FIRST, s->name, s->sha1, s->keys);
	fwrite(s->source, 1, s->source_len, stdout);
}
"""


def test_embedded_scripts_are_the_very_bytes_with_their_digest(tree):
    source = b'\n-- KEYS: 3\n-- "\\ ??= \x7f\xc3\xa9\t1\x019\n' + b"x" * 500
    tree.write("lua/first.lua", "-- KEYS: 1\n")
    (tree.root / "lua/second.lua").write_bytes(source)
    tree.write("store/script.h", SCRIPT_H)
    tree.write("dump.c", DUMP_C)
    embedded = run("embed_lua", tree.root / "scripts.gen.c", tree.root / "script_ids.gen.h",
                   tree.root / "lua/second.lua", tree.root / "lua/first.lua")
    assert embedded.returncode == 0, embedded.stderr
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-I.", "dump.c", "scripts.gen.c", "-o", "dump"],
                   cwd=tree.root, check=True)
    dumped = subprocess.run([tree.root / "dump"], stdout=subprocess.PIPE, check=True).stdout
    head, _, body = dumped.partition(b"\n")
    assert head.decode() == f"2 0 second {hashlib.sha1(source).hexdigest()} 3"
    assert body == source


@pytest.mark.parametrize("text", ["return 1\n", "-- KEYS: 1\n-- KEYS: 2\n", "-- KEYS: many\n"])
def test_a_script_without_one_count_of_keys_is_refused(tree, text):
    script = tree.write("lua/place.lua", text)
    result = run("embed_lua", tree.root / "s.c", tree.root / "s.h", script)
    assert result.returncode == 1
    assert f"{script}: needs one line `-- KEYS: <n>`" in result.stderr
    assert not (tree.root / "s.c").exists()


# run_tests


@pytest.fixture
def rings(tree):
    """A tree with its own run_tests; unit(name, script) adds a unit executable, a shell script."""
    (tree.root / "tools").mkdir()
    shutil.copy(TOOLS / "run_tests", tree.root / "tools")

    def unit(name, script):
        tree.write(f"tests/unit/{name}.c", "")
        tree.write(f"build/tests/unit/{name}", f"#!/bin/sh\n{script}\n").chmod(0o755)

    def run_rings(*arguments):
        return run(tree.root / "tools/run_tests", *arguments, FAIRLEAD_BUILD="build", FAIRLEAD_BINARY="/bin/true")

    tree.unit, tree.run = unit, run_rings
    return tree


def last_line(result):
    return result.stdout.splitlines()[-1]


def test_results_of_executables_and_pytest_are_summed(rings):
    rings.unit("test_a", "printf '1..2\\nok 1 - x\\nok 2 - y\\n# ok - group\\n1..1\\nok 1 - z\\n'")
    rings.write("tests/script/test_s.py", "def test_one(): pass\ndef test_two(): pass\n")
    result = rings.run("unit", "script")
    assert (last_line(result), result.returncode) == ("5 passed, 0 failed", 0)


def test_a_failed_unit_test_is_counted_and_shown(rings):
    rings.unit("test_a", "printf '1..2\\nok 1 - x\\nnot ok 2 - y\\n# 1 != 2\\n# not ok - group\\n'; exit 1")
    result = rings.run("unit")
    assert (last_line(result), result.returncode) == ("1 passed, 1 failed", 1)
    assert "# 1 != 2" in result.stdout


@pytest.mark.parametrize(
    "script, complaint",
    [
        ("printf '1..2\\nok 1 - x\\n'; kill -SEGV $$", "ended by SIGSEGV"),
        ("printf '1..2\\nok 1 - x\\n'; exit 0", "reported 1 of 2 tests"),
        ("printf '1..1\\nok 1 - x\\n'; exit 99", "ended with status 99"),
        ("printf '1..1\\nok 1 - x\\n1..0\\n'; exit 1", "ended with status 1"),
    ],
)
def test_what_a_unit_executable_hides_is_a_failure(rings, script, complaint):
    rings.unit("test_a", script)
    result = rings.run("unit")
    assert (last_line(result), result.returncode) == ("1 passed, 1 failed", 1)
    assert f"FAILED unit test_a: {complaint}" in result.stdout


def test_a_hung_executable_is_ended_even_when_a_child_keeps_its_output(rings):
    runner = rings.root / "tools/run_tests"
    runner.write_text(runner.read_text().replace("EXECUTABLE_SECONDS = 120", "EXECUTABLE_SECONDS = 1"))
    child = rings.root / "child"
    rings.unit("test_a", f"echo '1..1'; setsid sh -c 'echo $$ >{child}; exec sleep 60' & wait")
    result = rings.run("unit")
    os.kill(int(child.read_text()), 9)
    assert (last_line(result), result.returncode) == ("0 passed, 1 failed", 1)
    assert "test_a: still ran after 1 s" in result.stdout


def test_a_silent_executable_and_one_that_is_not_built_are_failures(rings):
    rings.unit("test_a", "exit 0")
    rings.write("tests/unit/test_b.c", "")
    result = rings.run("unit")
    assert (last_line(result), result.returncode) == ("0 passed, 2 failed", 1)
    assert "test_a: ran no test" in result.stdout
    assert "test_b: not built" in result.stdout


@pytest.mark.parametrize(
    "text, counts",
    [
        ("def test_one(): assert False\ndef test_two(): pass\n", "1 passed, 1 failed"),
        ("import nothing_of_that_name\n", "0 passed, 1 failed"),
        ("import pytest\n@pytest.fixture\ndef f(): raise OSError\ndef test_one(f): pass\n", "0 passed, 1 failed"),
        ("import os\ndef test_one(): os.abort()\n", "0 passed, 1 failed"),
        ("import pytest\n@pytest.mark.skip\ndef test_one(): pass\n", "0 passed, 1 failed"),
        ("", "0 passed, 1 failed"),
    ],
    ids=["assertion", "collection", "fixture", "crash", "only skipped", "no test"],
)
def test_failures_of_pytest_are_counted(rings, text, counts):
    rings.write("tests/script/test_s.py", text)
    result = rings.run("script")
    assert (last_line(result), result.returncode) == (counts, 1)


def test_core_selects_in_the_system_ring_alone(rings):
    rings.write("tests/pytest.ini", "[pytest]\nmarkers =\n    core: x\n")
    text = "import pytest\n@pytest.mark.core\ndef test_one(): pass\ndef test_two(): pass\n"
    rings.write("tests/system/test_s.py", text)
    rings.write("tests/script/test_t.py", text)
    assert last_line(rings.run("--core", "system")) == "1 passed, 0 failed"
    assert last_line(rings.run("--core", "script")) == "2 passed, 0 failed"


@pytest.mark.parametrize("words, counts", [
    (["system"], "1 passed, 0 failed"), (["--core", "system"], "1 passed, 0 failed"),
    (["nightly"], "2 passed, 0 failed")])
def test_what_is_nightly_runs_in_the_nightly_ring_alone(rings, words, counts):
    rings.write("tests/pytest.ini", (TOOLS.parent / "tests/pytest.ini").read_text())
    mark = "import pytest\n@pytest.mark.nightly\n@pytest.mark.core\n"
    rings.write("tests/system/test_s.py", mark + "def test_one(): pass\n@pytest.mark.core\ndef test_two(): pass\n")
    rings.write("tests/nightly/test_n.py", mark + "def test_three(): pass\n")
    assert last_line(rings.run(*words)) == counts


def test_a_ring_ends_when_its_time_is_up(rings):
    rings.write("tests/script/test_s.py", "import time\ndef test_one(): time.sleep(60)\n")
    result = rings.run("--limit", "1", "script")
    assert (last_line(result), result.returncode) == ("0 passed, 1 failed", 1)
    assert "pytest still ran after 1 s" in result.stdout


# install_packages

FAKE_DPKG_QUERY = r"""#!/bin/sh
case "$*" in
*"db:Status-Status"*) for last; do :; done; grep -qx "$last" "$FAKE_INSTALLED" && printf installed ;;
*Depends*) echo 'clang-14 (>= 14~), libc6' ;;
esac
"""


@pytest.fixture
def debian(tree):
    """A PATH on which dpkg-query knows what stands in the file `installed`, and apt-get must not be reached."""
    installed = tree.root / "installed"
    for name, text in (("dpkg-query", FAKE_DPKG_QUERY), ("apt-cache", "#!/bin/sh\n"), ("id", "#!/bin/sh\necho 1000\n"),
                       ("apt-get", f"#!/bin/sh\ntouch {tree.root}/reached\nexit 100\n")):
        tree.write(f"bin/{name}", text).chmod(0o755)
    for name in ("sed", "grep", "head"):
        (tree.root / "bin" / name).symlink_to(shutil.which(name))

    def install(what, packages):
        installed.write_text("\n".join(packages) + "\n")
        # /usr/sbin and /sbin follow on the script's own PATH; sudo stands in neither
        return run("install_packages", what, PATH=str(tree.root / "bin"), FAKE_INSTALLED=str(installed))

    tree.install = install
    return tree


RUN_PACKAGES = ("build-essential meson ninja-build pkg-config libevent-dev libhiredis-dev libssl-dev libjansson-dev "
                "libinih-dev libcurl4-openssl-dev libmaxminddb-dev ca-certificates uthash-dev scdoc curl "
                "python3").split()


@pytest.mark.parametrize("server", ["redis-server", "valkey-server"])
def test_nothing_is_updated_when_nothing_is_missing(debian, server):
    result = debian.install("run", [*RUN_PACKAGES, server])
    assert (result.returncode, result.stdout) == (0, "install_packages: everything for 'run' is here already\n")
    assert not (debian.root / "reached").exists()


def test_without_root_and_sudo_it_says_what_is_missing_and_changes_nothing(debian):
    result = debian.install("run", RUN_PACKAGES)
    assert result.returncode == 1
    assert "missing: redis-server" in result.stdout
    assert "needs root and there is no sudo" in result.stderr
    assert not (debian.root / "reached").exists()


@pytest.mark.parametrize("what, package", [("run", "libevent-dev"), ("test", "stunnel4"), ("nightly", "chromium")])
def test_a_system_without_apt_is_told_so(debian, what, package):
    (debian.root / "bin/apt-get").unlink()
    result = debian.install(what, [])
    assert result.returncode == 1
    assert "there is no apt-get here" in result.stderr
    assert package in result.stderr.split()


def test_the_browser_is_a_set_of_its_own(debian):
    assert "missing: chromium-driver python3-selenium" in debian.install("nightly", ["chromium"]).stdout


def test_unknown_words_are_wrong_usage():
    assert run("install_packages", "everything").returncode == 2
    assert run("run_tests", "unti").returncode == 2
