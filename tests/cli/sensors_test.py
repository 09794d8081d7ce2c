"""Reports from a machine without any sensor, and from one whose sensors are garbage.

python3 -m tests.cli.sensors_test build/dev/bakeoff

BAKEOFF_SENSORS names the folder that stands for /: below it lie proc and sys.
"""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any

from tests.cli import support

GARBAGE = {
    "proc/stat": "cpu garbage\n",
    "proc/loadavg": "busy very busy\n",
    "proc/uptime": "long\n",
    "proc/meminfo": "MemAvailable: lots kB\n",
    "proc/pressure/cpu": "some avg10=x total=y\n",
    "proc/pressure/memory": "\0\0\0",
    "proc/pressure/io": "",
    "proc/self/cgroup": "4:memory:/job\n1:cpu:/job\n0::/job\n",
    "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "much\n",
    "sys/fs/cgroup/memory/job/memory.max_usage_in_bytes": "-1\n",
    "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9e999\n",
    "sys/fs/cgroup/cpu/job/cpu.stat": "throttled_time often\n",
    "sys/class/powercap/intel-rapl:0/name": "package-0\n",
    "sys/class/powercap/intel-rapl:0/energy_uj": "plenty\n",
    "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "-7\n",
    "sys/class/hwmon/hwmon0/name": "coretemp\n",
    "sys/class/hwmon/hwmon0/temp1_input": "hot\n",
    "sys/class/thermal/thermal_zone0/type": "x86_pkg_temp\n",
    "sys/class/thermal/thermal_zone0/temp": "99999999\n",
}
# Of every process; the tests do not know their numbers beforehand.
OF_A_PROCESS = {
    "stat": "1 (x) R minus\n",
    "statm": "many pages\n",
    "status": "VmRSS:\tall kB\nVmHWM: -3 kB\n",
    "smaps_rollup": "Pss: half kB\n",
    "task/1/schedstat": "1 two 3\n",
    "task/1/status": "voluntary_ctxt_switches:\tnever\n",
}
# Of what is read from files; processor time comes from the kernel itself.
FROM_FILES = {
    "waiting_for_processor": "waiting for a processor",
    "page_faults_per_step": "page faults",
    "context_switches_per_step": "context switches",
    "joules_per_step": "energy",
    "temperature_c": "temperature",
    "samples_per_joule": "energy",
}
COST = 'per_hour = 1.2\ncurrency = "EUR"\ngrams_per_kwh = 400\n'


class Sensors(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.place_for(self, "onnxruntime", shared_proofs=True)
        self.root = self.place.path / "root"
        self.root.mkdir()
        self.place.variables["BAKEOFF_SENSORS"] = str(self.root)
        self.place.variables["BAKEOFF_NVML"] = str(self.root / "libnvidia-ml.so.1")

    def race(self) -> Any:
        text = support.recipe(
            ['framework = "onnxruntime"'],
            top=support.PREDICTIONS,
            optimizer="",
            budget="minutes = 4\nheats = 1\n",
            cost=COST,
            largest_batch='memory = "2 GiB"\nmost = 100\n',
        )
        recipe = self.place.write("race.toml", text)
        done = self.place.ok("run", recipe, "--out", "r", "--format", "json")
        return done.json()

    def check(self, report: Any) -> None:
        (row,) = report["ranked"]
        absent = "\n".join(report["not_sampled"])
        for name, topic in FROM_FILES.items():
            with self.subTest(name):
                self.assertIsNone(row[name], "neither a number nor a zero")
                self.assertRegex(absent, rf"(?m)^{topic}: \S+", "its reason")
        self.assertIsNone(row["gpu"])
        for name in ("rss_in_bursts_bytes", "pss_bytes", "bytes_per_sample"):
            self.assertIsNone(row["memory"][name], name)
        self.assertRegex(absent, r"(?m)^resident memory: \S+")
        for name in ("joules", "grams_co2"):
            self.assertIsNone(row["epoch"][name])
        # What needs no sensor is there.
        self.assertGreater(row["ms_per_step"]["value"], 0)
        self.assertGreater(row["cores_busy"], 0)
        self.assertGreater(row["epoch"]["price"], 0)
        self.assertGreater(row["samples_per_currency_unit"], 0)
        self.assertGreater(row["peak_rss_bytes"], 0)
        (largest,) = report["largest_batch"]
        self.assertIsNone(largest["largest_batch"])
        self.assertIn(
            "how much memory is available is not known", largest["stopped_by"]
        )
        self.check_formats(absent)

    def check_formats(self, absent: str) -> None:
        energy = next(line for line in absent.splitlines() if line.startswith("energy"))
        html = (self.place.path / "r" / "report.html").read_text()
        self.assertIn(energy.split(": ")[1].split("'")[0], html)
        self.assertNotIn("Samples a joule", html)
        markdown = self.place.run("report", "r", "--format", "markdown").out
        self.assertIn("Not measured: ", markdown)
        self.assertIn("samples/EUR", markdown)
        self.assertNotIn("samples/J", markdown)
        table = self.place.run("report", "r", "--format", "csv").out
        self.assertIn(",samples_per_joule,", table)
        terminal = self.place.run("report", "r").out
        self.assertNotIn("samples/J", terminal)

    def test_without_any(self) -> None:
        report = self.race()
        self.check(report)
        for trial in self.trials():
            for burst in trial["bursts"]:
                self.assertEqual(
                    set(burst["used"]) - {"wall_s", "cpu_s"}, self.counted(trial)
                )

    def test_all_of_them_garbage(self) -> None:
        for name, text in GARBAGE.items():
            self.write(self.root / name, text)
        template = self.root / "process"
        for name, text in OF_A_PROCESS.items():
            self.write(template / name, text)
        most = int(Path("/proc/sys/kernel/pid_max").read_text())
        last = int(Path("/proc/sys/kernel/ns_last_pid").read_text())
        for pid in range(1, most) if most <= 1 << 16 else range(last, last + 20000):
            (self.root / "proc" / str(pid)).symlink_to(template)
        self.check(self.race())

    def counted(self, trial: Any) -> set[str]:
        """Performance counters, which come from the kernel itself, too."""
        names = {"instructions", "cycles", "cache_misses", "branch_misses"}
        return names - set(trial["not_sampled"])

    def trials(self) -> list[Any]:
        text = (self.place.path / "r" / "trials.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    support.main()
