"""Heats of a race that another process runs: an order goes out in a file, a result comes back in one.

python3 -m tests.cli.heats_elsewhere_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import unittest

from tests.cli import support


class HeatsElsewhere(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.place_for(self, "onnxruntime", shared_proofs=True)
        text = support.recipe(
            ['framework = "onnxruntime"'],
            top=support.PREDICTIONS,
            optimizer="",
            budget="minutes = 4\nheats = 2\n",
        )
        self.recipe = self.place.write("race.toml", text)

    def race(self, command: str) -> support.Outcome:
        arguments = ("run", self.recipe, "--out", "r", "--format", "json")
        return self.place.run(*arguments, "--heats-by", command)

    def test_a_race_is_the_same_whoever_runs_its_heats(self) -> None:
        log = self.place.path / "served"
        server = self.place.write(
            "server.sh",
            f'#!/bin/sh\necho "$@" >> {log}\nexec {support.BAKEOFF} run --serve-heat "$@"\n',
        )
        server.chmod(0o755)
        done = self.race(str(server))
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(len(log.read_text().splitlines()), 2)
        self.assertEqual(done.json()["ranked"][0]["heats"], 2)
        run = self.place.path / "r"
        trials = [
            json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()
        ]
        self.assertEqual([trial["heat"] for trial in trials], [1, 2])
        self.assertEqual(list(run.glob("heat_*.json")), [], "orders and results go")

    def test_a_heat_that_nobody_runs_ends_the_race_with_the_reason(self) -> None:
        done = self.race("/bin/false")
        self.assertEqual(done.code, 2, done.err)
        self.assertIn("heat 1 was not run by '/bin/false': exit code 1", done.err)

    def test_an_order_of_another_run_is_refused(self) -> None:
        order = self.place.write("order.json", '{"members": [7], "number": 1}')
        self.place.ok("run", self.recipe, "--out", "r", "--budget", "2pairs")
        result = self.place.path / "result.json"
        empty = self.place.write("empty.json", '{"members": [], "number": 1}')
        for file, said in ((order, "has no contender number 7"), (empty, "no round")):
            served = self.place.run("run", "--serve-heat", "r", file, result)
            self.assertEqual(served.code, 2, served.err)
            self.assertIn(said, served.err)
            self.assertFalse(result.exists())

    def test_a_result_that_was_not_ordered_is_refused(self) -> None:
        trial = '{"contender": "onnxruntime", "heat": 9}'
        answer = f'{{"trials": [{trial}], "audits_s": 0}}'
        liar = self.place.write("liar.sh", f"#!/bin/sh\necho '{answer}' > \"$3\"\n")
        liar.chmod(0o755)
        done = self.race(str(liar))
        self.assertEqual(done.code, 2, done.err)
        self.assertIn("with a trial of onnxruntime in heat 9", done.err)


if __name__ == "__main__":
    support.main()
