"""Runs the program as a child process and follows its events."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Union

from .campaign import Campaign
from .errors import ComoveWarning, error_class
from .program import find_program
from .progress import Progress

PathLike = Union[str, Path]


def run(
    recipe: PathLike,
    *,
    dir: PathLike | None = None,
    parameters: Mapping[str, Any] | None = None,
    only: str | Sequence[str] = (),
    force: str | Sequence[str] = (),
    device: str | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    memory: float | None = None,
    walltime: str | None = None,
    keep_going: bool = False,
    accept_version: bool = False,
    options: Sequence[str] = (),
    progress: bool = True,
    program: PathLike | None = None,
    **recipe_parameters: Any,
) -> Campaign:
    """Runs a recipe's campaign, or what is left of it, as `comove run` does: `run("recipe.rhai", root=64)`.

    Further keywords are parameters of the recipe; `parameters` has those whose names are options of this function.
    `options` has further arguments of the command line. The campaign folder is `dir`, by default in the working
    directory and named after the recipe.

    An interrupt (Ctrl-C, or the notebook's stop button) ends the program after the step in progress, with a checkpoint;
    the same call, or `resume`, continues. A second interrupt ends it at once.

    Raises a ProgramError with the program's message and exit code: RecipeError, InputError, Stopped, ....
    """
    given = {**dict(parameters or {}), **recipe_parameters}
    arguments = ["run", str(recipe)]
    if dir is not None:
        arguments += ["--dir", str(dir)]
    for name, value in given.items():
        arguments += ["-p", f"{name}={_text(value)}"]
    for option, names in (("--only", only), ("--force", force)):
        for name in [names] if isinstance(names, str) else names:
            arguments += [option, name]
    arguments += _machine(device, jobs, threads, memory, walltime, keep_going, accept_version, options)
    folder = Path(dir) if dir is not None else Path(Path(recipe).stem)
    return _follow(find_program(program), arguments, folder, progress)


def resume(
    dir: PathLike,
    *,
    device: str | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    memory: float | None = None,
    walltime: str | None = None,
    keep_going: bool = False,
    accept_version: bool = False,
    options: Sequence[str] = (),
    progress: bool = True,
    program: PathLike | None = None,
) -> Campaign:
    """Resumes the campaign in a folder, as `comove resume` does. Interrupts and errors are those of `run`."""
    machine = _machine(device, jobs, threads, memory, walltime, keep_going, accept_version, options)
    return _follow(find_program(program), ["resume", str(dir), *machine], Path(dir), progress)


def _machine(
    device: str | None,
    jobs: int | None,
    threads: int | None,
    memory: float | None,
    walltime: str | None,
    keep_going: bool,
    accept_version: bool,
    options: Sequence[str],
) -> list[str]:
    values = {"--device": device, "--jobs": jobs, "--threads": threads, "--memory": memory, "--walltime": walltime}
    arguments = [text for name, value in values.items() if value is not None for text in (name, str(value))]
    flags = {"--keep-going": keep_going, "--accept-version": accept_version}
    return arguments + [name for name, is_on in flags.items() if is_on] + list(options)


def _text(value: Any) -> str:
    """A parameter as the command line writes it."""
    if isinstance(value, (bool,)) or type(value).__name__ == "bool_":
        return "true" if value else "false"
    return str(value)


def _follow(program: Path, arguments: list[str], folder: Path, shows_progress: bool) -> Campaign:
    log = folder / "log.txt"
    logged = log.stat().st_size if log.exists() else 0
    progress = Progress(shows_progress)
    child = Child([str(program), *arguments, "--json", "--quiet"])
    failed: dict[str, str] = {}
    interrupt: KeyboardInterrupt | None = None
    try:
        while True:
            try:
                line = child.next_line()
                if line is None:
                    break
                event = _event(line)
                if event is None:
                    progress.say(line)
                    continue
                progress.show(event)
                if event["event"] == "stage_failed":
                    failed[progress.name_of(event["fingerprint"])] = event["reason"]
            except KeyboardInterrupt as error:
                interrupt = error
                progress.say(child.interrupt())
        exit_code, text = child.finish()
    except BaseException:
        child.abandon()
        raise
    finally:
        progress.close()
    text, said = _without_warnings(text, log, logged)
    for warning in said:
        warnings.warn(warning, ComoveWarning, stacklevel=3)
    if exit_code == 0 and interrupt is None:
        return Campaign(folder)
    message = text or (f"{program}: ended by signal {-exit_code}" if exit_code < 0 else f"{program}: exit code {exit_code}")
    problem = error_class(exit_code)(message, exit_code, folder, failed)
    if interrupt is not None:
        raise interrupt from (problem if exit_code else None)
    raise problem


def _event(line: str) -> dict[str, Any] | None:
    """The event of a line; None for a line that the recipe prints."""
    if line.startswith("{"):
        try:
            event = json.loads(line)
        except ValueError:
            return None
        if isinstance(event, dict) and "event" in event:
            return event
    return None


class Child:
    """The program as a child process.

    It has a session of its own, so that the terminal's Ctrl-C reaches it once, through this process.
    """

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._errors: list[str] = []
        self._interrupts = 0
        out, err = self.process.stdout, self.process.stderr
        assert out is not None and err is not None
        self._threads = [
            threading.Thread(target=self._read_events, args=(out,), daemon=True),
            threading.Thread(target=lambda: self._errors.extend(err), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read_events(self, out: IO[str]) -> None:
        for line in out:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def next_line(self) -> str | None:
        """The next line of the standard output; None at its end."""
        return self._lines.get()

    def interrupt(self) -> str:
        """Passes an interrupt on, and returns a line for the user."""
        self._interrupts += 1
        if self._interrupts > 2:
            self.process.kill()
            return "killed"
        self.process.send_signal(signal.SIGINT)
        if self._interrupts == 2:
            return "stopping at once"
        return "stopping after the step in progress, with a checkpoint; interrupt again to stop at once"

    def finish(self) -> tuple[int, str]:
        """The exit code, and the text of the standard error."""
        exit_code = self.process.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return exit_code, "".join(self._errors)

    def abandon(self) -> None:
        """Ends it with a checkpoint, where this process cannot follow it any longer."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()


def _without_warnings(text: str, log: Path, start: int) -> tuple[str, list[str]]:
    """Splits the standard error into the message of the error and the warnings, which the log has from `start` on."""
    try:
        with log.open("rb") as file:
            file.seek(start)
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return text.strip(), []
    said: list[str] = []
    is_warning = False
    for line in lines:
        words = line.split(None, 2)
        if len(words) == 3 and words[0].endswith("Z") and words[1] in ("ERROR", "WARN", "INFO", "DEBUG", "TRACE"):
            is_warning = words[1] in ("ERROR", "WARN")
            if is_warning:
                said.append(words[2])
        elif is_warning:
            said[-1] += f"\n{line}"
    for warning in said:
        # the log begins with the stage's name, which a quiet program leaves out
        parts = warning.split(": ")
        shown = (": ".join(parts[n:]) + "\n" for n in range(len(parts)))
        text = text.replace(next((one for one in shown if one in text), "\0"), "", 1)
    return text.strip(), said


