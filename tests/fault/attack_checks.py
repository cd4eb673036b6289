#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the attack drivers: they must notice planted faults, and an attack that tries nothing must fail.

  attack_checks.py --bin build/bin --library build/tests/libfail_kth.so
"""

import argparse
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
given = None


class Drivers(unittest.TestCase):
    def expect(self, driver, arguments, status, words):
        done = subprocess.run(
            [sys.executable, HERE / f"{driver}.py", "--bin", given.bin, "--seed", "1", *arguments],
            capture_output=True, text=True, timeout=250)
        told = f"{arguments}: status {done.returncode}\n{done.stdout}{done.stderr}"
        self.assertEqual(done.returncode, status, told)
        self.assertIn(words, done.stdout + done.stderr, told)

    def fail_kth(self, arguments, status, words, library=None):
        self.expect("fail_kth", ["--library", library or given.library, "--mpiexec", "", *arguments],
                    status, words)

    def test_unknown_names_are_refused(self):
        self.fail_kth(["--only", "mergers"], 2, "there is no scenario 'mergers'")
        self.fail_kth(["--kinds", "opens"], 2, "invalid choice: 'opens'")
        self.expect("mutated_files", ["--only", "idx"], 2, "there is no kind 'idx'")

    def test_an_attack_without_a_case_fails(self):
        self.fail_kth(["--only", "merge", "--name", ".none"], 1, "there is no case")
        self.fail_kth(["--only", "merge", "--cases", "0"], 1, "no case was tried")
        self.expect("mutated_files", ["--cases", "0"], 1, "no case was tried")
        self.expect("racing_writers", ["--cases", "0"], 1, "no race was tried")

    def test_an_attack_whose_faults_do_not_strike_fails(self):
        self.fail_kth(["--only", "merge", "--plan", "rename:999:EIO:once"], 1, "were missed")

    def test_the_library_must_be_there_and_loaded(self):
        self.fail_kth(["--only", "merge"], 1, "does not exist", "/nonexistent/libfail_kth.so")
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "broken.so"
            broken.write_bytes(b"no library")
            self.fail_kth(["--only", "merge"], 77, "does not preload", broken)
            spaced = pathlib.Path(folder) / "a b:c"
            spaced.mkdir()
            shutil.copy(given.library, spaced)
            self.fail_kth(["--only", "merge", "--kinds", "rename", "--faults", "EIO"], 0, "refused",
                          spaced / given.library.name)

    def test_a_run_that_fails_without_a_fault_is_wrong(self):
        import attack
        import fail_kth
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "out").mkdir()
            attacked = fail_kth.Attack(None, root, None)
            refusal = attack.Result(1, "", "merge_datasets: the disk is full\n", 0)
            command = lambda *_: ["true"]
            plan = "write:9:EIO:once"
            usual = fail_kth.Scenario("a", "merge_datasets", command, wanted={}, retries=[()])
            self.assertEqual(attacked.judge(usual, root / "out", plan, refusal, fired=1)[0],
                             "refused")
            self.assertEqual(attacked.judge(usual, root / "out", plan, refusal, fired=0)[0],
                             "wrong")
            refusing = fail_kth.Scenario(
                "b", "merge_datasets", lambda *_: ["sh", "-c", "echo merge_datasets: no such >&2; false"],
                wanted={}, refuses=True)
            self.assertEqual(attacked.judge(refusing, root / "out", plan, refusal, fired=0)[0],
                             "missed")

    def test_a_call_more_changes_no_other_choice(self):
        import fail_kth
        with tempfile.TemporaryDirectory() as folder:
            attacked = fail_kth.Attack(None, pathlib.Path(folder), None)
            scenarios = [fail_kth.Scenario(name, "", None) for name in ("a", "b")]

            def order(scenario, renames):
                attacked.count = lambda of, _: {"rename": renames if of.name == "a" else 5}
                cases = attacked.cases(scenarios, None, ["EIO"], 1)
                return [plan for of, _, plan in cases if of.name == scenario]

            self.assertEqual(order("b", 5), order("b", 6))
            longer = order("a", 6)
            self.assertEqual(order("a", 5), [plan for plan in longer if "rename:6" not in plan])
            self.assertNotEqual(sorted(longer), longer)

    def test_a_run_hangs_only_if_it_does_so_alone_as_well(self):
        import attack
        tried, hung, limits = [], [], []

        def attempt(case):
            tried.append(case)
            begin = time.monotonic()
            try:
                if case == "slow":  # slow only under load; alone, the run needs a twentieth of the limit
                    attack.run(["sleep", "0.5" if attack._patience > 1 else "60"], limit_s=1)
                elif case == "hangs":  # a child in another process group hangs too
                    attack.run(["sh", "-c", "setsid -f sleep 20; python3 -c 'import os, time; "
                                "os.setpgid(0, 0); time.sleep(60)'"], limit_s=0.2)
            finally:
                limits.append((case, time.monotonic() - begin))

        count = attack.work_through(["quick", "slow", "hangs"], attempt,
                                    lambda case, what: hung.append((case, str(what))), None)
        self.assertEqual(count, 3)
        self.assertEqual(sorted(tried), ["hangs", "hangs", "quick", "slow", "slow"])
        self.assertEqual([case for case, _ in hung], ["hangs"])
        self.assertIn("took longer than 2 s", hung[0][1])
        self.assertLess(max(took for _, took in limits), 30)

    def planted(self, folder, name, script):
        """Fills a folder with links to the programs. `script` replaces program `name`; it can call
        the real program as $real."""
        for program in ("preprocess_data", "merge_datasets", "inspect_dataset"):
            (pathlib.Path(folder) / program).symlink_to((given.bin / program).resolve())
        planted = pathlib.Path(folder) / name
        planted.unlink()
        planted.write_text(f"#!/bin/sh\nreal={shlex.quote(str((given.bin / name).resolve()))}\n{script}")
        planted.chmod(0o755)
        return folder

    def test_exit_0_with_another_result_is_wrong(self):
        for only, name, script, words in (
                ("tokens", "inspect_dataset", 'test "$1" != verify || exit 0\nexec "$real" "$@"\n',
                 "verify exits with 0"),
                ("parts of a merge", "merge_datasets", '"$real" "$@"\nexit 0\n',
                 "merged.bin is missing"),
                ("gz", "preprocess_data",
                 '"$real" "$@"\ncase $? in 1) exit 0;; 137) kill -9 $$;; esac\n', "is missing")):
            with self.subTest(only), tempfile.TemporaryDirectory() as folder:
                self.expect("mutated_files", ["--bin", self.planted(folder, name, script), "--only",
                                              only, "--cases", "60"], 1, words)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    given, rest = parser.parse_known_args()
    sys.path.insert(0, str(HERE))
    unittest.main(argv=[sys.argv[0], *rest])
