"""What holds for every flag of every command: the environment, underscores, values left out."""

from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.core import ParameterSource

from heed.cli import command as command_module
from heed.cli.command import Command, Option, Session, Threads, command, options
from heed.cli.main import COMMANDS
from heed.cli.main import heed as program
from heed.machine import threads


def every_flag() -> Iterator[tuple[str, click.Command, click.Option, str]]:
    parent = click.Context(program, info_name="heed")
    for name in (name for group in COMMANDS.values() for name in group):
        found = program.get_command(parent, name)
        inner = found.commands if isinstance(found, click.Group) else {"": found}
        for second, each in inner.items():
            for param in each.params:
                for flag in param.opts if isinstance(param, click.Option) else ():
                    if flag.startswith("--"):
                        yield f"{name} {second}".strip(), each, param, flag


FLAGS = list(every_flag())
each_flag = pytest.mark.parametrize(
    ("name", "each", "param", "flag"), FLAGS, ids=[f"{f[0]} {f[3]}" for f in FLAGS]
)


def sample(param: click.Option) -> str:
    if isinstance(param.type, click.Choice):
        return param.type.choices[0]
    return "1"


@each_flag
def test_every_flag_has_a_variable_by_its_own_name(
    name: str, each: Command, param: Option, flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = click.Context(program, info_name="heed", auto_envvar_prefix="HEED")
    for word in name.split():
        ctx = click.Context(each, info_name=word, parent=ctx)
    variable = f"HEED_{name}_{flag[2:]}".upper().replace("-", "_").replace(" ", "_")
    monkeypatch.setenv(variable, sample(param))
    value, source = param.consume_value(ctx, {})
    assert source is ParameterSource.ENVIRONMENT
    assert param.type_cast_value(ctx, value) is not None


@each_flag
def test_every_flag_takes_underscores(name: str, each: Command, param: Option, flag: str) -> None:
    spelled = "--" + flag[2:].replace("-", "_")
    arguments = [spelled] if param.is_flag else [spelled, sample(param)]
    ctx = each.make_context(name, arguments, resilient_parsing=True)
    assert ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE


@command("sample", "A command.")
@options("Options")("--kind", ("one", "two"), "Which.", bare="two")
@options("Options")("--port", click.IntRange(0, 65535), "A number.", bare="0")
@options("Options")("--length-penalty alpha", float, "Its parameter has another name.")
@options("Options")("--length-formula length_penalty", str, "And this one that name.")
@options("Options")("--src", str, "May be repeated.", multiple=True)
@options("Options")("-m --model", str, "Has a variable besides.", envvar=["HEED_MODEL"])
@click.argument("others", nargs=-1)
def tool(**values: Any) -> Any:
    return values


def values(*arguments: str) -> dict[str, Any]:
    parent = click.Context(program, info_name="heed", auto_envvar_prefix="HEED")
    ctx = tool.make_context("sample", list(arguments), parent=parent)
    return ctx.params


@pytest.mark.parametrize(
    ("arguments", "kind", "others"),
    [
        ([], None, ()),
        (["--kind"], "two", ()),
        (["--kind", "one"], "one", ()),
        (["--kind=one", "x"], "one", ("x",)),
        (["--kind", "x"], "two", ("x",)),
        (["x", "--kind"], "two", ("x",)),
        (["--kind", "--length-penalty", "1"], "two", ()),
    ],
)
def test_a_value_that_may_be_left_out_is_never_taken_from_what_follows(
    arguments: list[str], kind: str | None, others: tuple[str]
) -> None:
    found = values(*arguments)
    assert (found["kind"], found["others"]) == (kind, others)


@pytest.mark.parametrize(
    ("arguments", "port", "others"),
    [
        ([], None, ()),
        (["--port"], 0, ()),
        (["--port", "80", "x"], 80, ("x",)),
        (["--port=80"], 80, ()),
        (["--port", "80.tsv"], 0, ("80.tsv",)),
        (["--port", "-m", "x"], 0, ()),
    ],
)
def test_a_number_that_may_be_left_out_is_only_a_number(
    arguments: list[str], port: int | None, others: tuple[str]
) -> None:
    found = values(*arguments)
    assert (found["port"], found["others"]) == (port, others)


def test_a_misspelled_choice_is_refused_and_not_taken_for_an_argument() -> None:
    with pytest.raises(click.BadParameter, match="'onee' is not one of 'one', 'two'"):
        tool.make_context("sample", ["--kind", "onee"])


def test_the_flag_not_its_parameter_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEED_SAMPLE_LENGTH_PENALTY", "0.5")
    found = values()
    assert (found["alpha"], found["length_penalty"]) == (0.5, None)


def test_what_is_typed_wins_then_the_commands_variable_then_the_common_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEED_MODEL", "common")
    assert values()["model"] == "common"
    monkeypatch.setenv("HEED_SAMPLE_MODEL", "own")
    assert values()["model"] == "own"
    assert values("-m", "typed")["model"] == "typed"
    monkeypatch.setenv("HEED_SAMPLE_MODEL", "")
    assert values()["model"] == "common"


@pytest.mark.parametrize(
    ("variable", "found"),
    [
        ("in/a b.en", ("in/a b.en",)),
        ("in/a b.en\nc.en\n", ("in/a b.en", "c.en")),
        ("\n", ()),
    ],
)
def test_a_variable_holds_one_value_on_each_line(
    monkeypatch: pytest.MonkeyPatch, variable: str, found: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HEED_SAMPLE_SRC", variable)
    assert values()["src"] == found
    assert values("--src", "d e")["src"] == ("d e",)


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (["--port", "1", "--port", "1"], "--port"),
        (["--port", "--port=2"], "--port"),
        (["--kind", "one", "x", "--kind"], "--kind"),
        (["-m", "a", "--model", "b"], "--model"),
        (["--length_penalty", "1", "--length-penalty", "2"], "--length-penalty"),
    ],
)
def test_a_flag_of_one_value_may_be_given_once(arguments: list[str], flag: str) -> None:
    with pytest.raises(click.UsageError, match=f"^{flag} takes one value, but is given more than"):
        values(*arguments)


def test_a_repeatable_flag_and_a_switch_may_be_given_twice() -> None:
    assert values("--src", "a", "--src", "a", "-q", "-q")["src"] == ("a", "a")


def test_every_option_of_ours_stands_in_a_group() -> None:
    assert all(isinstance(param, Option) for _, _, param, flag in FLAGS if flag != "--help")


@command("work", "A command.")
@options("Options")("--threads", Threads(1, 1024), "How many.")
def work(threads: int) -> None:
    click.echo(threads)


def test_more_threads_than_cores_are_lowered_with_a_remark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for room in (threads, command_module):
        monkeypatch.setattr(room, "count_cores", lambda: 2)
    remark = "--threads: 999 threads are more than the 2 cores of this machine; 2 will be used.\n"
    for arguments, words in (
        (["--threads", "2"], ""),
        (["--threads", "999"], remark),
        (["--threads", "999", "-q"], ""),
    ):
        work.main(arguments, obj=Session(), standalone_mode=False)
        assert capsys.readouterr() == ("2\n", words)
    with pytest.raises(click.BadParameter, match="0 is not in the range"):
        work.main(["--threads", "0"], obj=Session(), standalone_mode=False)
