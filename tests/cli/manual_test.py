"""The manual page and the completions name every command and option that --help names."""

from __future__ import annotations

import re
import shutil
import unittest

from tests.cli import support


class Manual(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.Place()
        self.addCleanup(self.place.close)
        listed = self.out("--help").split("Subcommands:")[1].split("Start with:")[0]
        self.commands = re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)

    def out(self, *words: str) -> str:
        done = self.place.ok(*words)
        return done.out

    def words(self, *given: str) -> list[str]:
        *command, pattern = given
        return re.findall(pattern, self.out(*command), re.MULTILINE)

    def test_all_commands_and_options_are_there(self) -> None:
        self.assertIn("run", self.commands)
        for command in ("recipes", "init", "exec", "help", "explain-terms"):
            self.assertIn(command, self.commands)
        self.assertIn("completion", self.commands)
        texts = {s: self.out("completion", s) for s in ("bash", "zsh", "fish")}
        page = self.out("man").replace("\\-", "-")
        for command in self.commands:
            self.assertIn(f".SS bakeoff {command}\n", page)
            for option in self.words(
                command, "--help", r"^ +(?:-\w, *)?(--[a-z][a-z-]+)"
            ):
                for name, text in texts.items():
                    word = option if name != "fish" else f"-l {option[2:]} "
                    self.assertIn(word, text, f"{command} in {name}")
                self.assertIn(option, page)
        for recipe in (support.ROOT / "recipes").glob("*.toml"):
            self.assertIn(f"\\fB{recipe.stem}\\fR\n", page)
            for name, text in texts.items():
                self.assertRegex(text, rf"\b{recipe.stem}\b", name)
        self.assertIn("\\fBheat\\fR\n", page)

    def test_bash_completes(self) -> None:
        bash = shutil.which("bash")
        assert bash is not None
        script = self.out("completion", "bash")
        ask = (
            "COMP_WORDS=(bakeoff {}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1));"
            ' _bakeoff; echo "${{COMPREPLY[@]}}"'
        )

        def complete(words: str) -> list[str]:
            text = f"{script}\n{ask.format(words)}"
            done = support.called([bash, "-c", text])
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.split()

        self.assertEqual(complete("par"), ["parity"])
        self.assertIn("--resume", complete("run --r"))
        self.assertIn("mnist_cnn_latency", complete("run mnist_cnn_l"))
        self.assertIn("digits_cnn", complete("init dig"))
        self.assertEqual(complete("help heat"), ["heat"])
        self.assertIn("create", complete("env cr"))

    def test_another_shell_is_refused(self) -> None:
        done = self.place.run("completion", "tcsh")
        self.assertEqual(done.code, 2)
        self.assertIn("bash", done.err)


if __name__ == "__main__":
    support.main()
