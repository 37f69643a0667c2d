"""`completion`: the script by which a shell completes commands, options and names.

The scripts run the command itself with a variable set, and click answers. Those for zsh and fish are click's; in bash a word
ends at a colon, as in aten::add, which click's own script does not expect.
"""

from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, get_completion_class, split_arg_string

from turnout_cli.main import json_option
from turnout_cli.output import print_json

PROGRAM = "turnout"
VARIABLE = "_TURNOUT_COMPLETE"


class Bash(ShellComplete):
    """Reads the line up to the cursor, and answers with what replaces the part that bash takes for the last word."""

    name = "turnoutbash"
    source_template = """\
%(complete_func)s() {
    local type value
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value"); [[ $value == *:: || $value == : ]] && compopt -o nospace ;;
        esac
    done < <(COMP_TEXT="${COMP_LINE:0:COMP_POINT}" COMP_BREAKS="$COMP_WORDBREAKS" %(complete_var)s=turnoutbash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""
    _before = ""  # what bash leaves of the word that is being typed

    def get_completion_args(self) -> tuple[list[str], str]:
        text = os.environ.get("COMP_TEXT", "")
        words = split_arg_string(text)
        typed = "" if not text or text[-1].isspace() else words.pop()
        self._before = typed[: typed.rfind(":") + 1] if ":" in os.environ.get("COMP_BREAKS", ":") else ""
        return words[1:], typed

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.type},{item.value.removeprefix(self._before)}"


add_completion_class(Bash)
SHELLS = {"bash": Bash.name, "zsh": "zsh", "fish": "fish"}


def script(shell: str) -> str:
    """The script for a shell."""
    from turnout_cli.main import turnout

    found = get_completion_class(SHELLS[shell])
    assert found is not None
    return found(turnout, {}, PROGRAM, VARIABLE).source().strip() + "\n"


@click.command
@click.argument("shell", type=click.Choice(list(SHELLS)))
@json_option
def completion(shell: str, as_json: bool) -> None:
    """Print a script that completes this command in a shell.

    \b
    bash  eval "$(turnout completion bash)"  in ~/.bashrc
    zsh   eval "$(turnout completion zsh)"   in ~/.zshrc, after compinit
    fish  turnout completion fish | source   in ~/.config/fish/config.fish
    """
    text = script(shell)
    if as_json:
        print_json({"shell": shell, "script": text})
    else:
        click.echo(text, nl=False)
