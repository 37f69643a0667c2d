"""The parser: recursive descent over the tokens of `tokens.py`, one method per rule of the grammar.

    schema      name '(' arguments ')' '->' returns
    name        NAME ['::' NAME] ['.' NAME]                   without white space
    arguments   [argument | '*'] {',' (argument | '*')}
    argument    type NAME ['=' default]
    returns     return | '(' [return {',' return}] ')'
    return      type [NAME]
    type        base [annotation] {'?' | '[' [NUMBER] ']'}
    annotation  '!' | '(' sets ['!'] ['->' sets] ')'
    sets        '*' | NAME {'|' NAME}

Rules beyond the grammar (no name twice, no required argument after a defaulted one, no alias set without an argument) are
checked during parsing, while the column is known.
"""

from __future__ import annotations

from typing import NoReturn

from turnout.errors.schemas import SchemaSyntaxError
from turnout.schema.defaults import read_default
from turnout.schema.parts import WILDCARD, Annotation, Argument, OperatorName, Return
from turnout.schema.tokens import END, NAME, NUMBER, described, tokenize
from turnout.schema.types import BaseType, OptionalType, TupleType, Type, list_of, optional_of, type_named

# The seeds allow bool[1] to bool[4]: the masks of backward operators.
_LONGEST_BOOLS = 4


def parse_schema(text: str) -> tuple[OperatorName, tuple[Argument, ...], tuple[Return, ...]]:
    """The name, arguments and returns that `text` declares. Raises SchemaSyntaxError."""
    return _Parser(text).schema()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        # The alias sets of the arguments, and those of written ones.
        self.carried: set[str] = {WILDCARD}
        self.written: set[str] = set()

    # ---- errors and single tokens

    def fail(self, expected: str, index: int | None = None, found: str | None = None) -> NoReturn:
        token = self.tokens[self.at if index is None else index]
        raise SchemaSyntaxError(self.text, token[2], expected, described(token) if found is None else found)

    def take(self, kind: str, expected: str) -> str:
        token = self.tokens[self.at]
        if token[0] != kind:
            self.fail(expected)
        self.at += 1
        return token[1]

    def skip(self, mark: str) -> bool:
        if self.tokens[self.at][0] != mark:
            return False
        self.at += 1
        return True

    # ---- rules

    def schema(self) -> tuple[OperatorName, tuple[Argument, ...], tuple[Return, ...]]:
        name = self.name()
        self.take("(", "'(' and the arguments")
        arguments = self.arguments()
        self.take("->", "'->' and the returns")
        returns = self.returns()
        if self.tokens[self.at][0] != END:
            self.fail("the end of the schema")
        return name, arguments, returns

    def name(self) -> OperatorName:
        first = self.at
        name = self.take(NAME, "the operator's name")
        namespace = ""
        if self.skip("::"):
            namespace, name = name, self.take(NAME, "the operator's name after '::'")
            if self.tokens[self.at][0] == "::":
                self.fail("'(', '.' or nothing more: a name has one namespace")
        overload = ""
        if self.skip("."):
            overload = self.take(NAME, "the overload's name after '.'")
            if overload == "default" or overload.startswith("__"):
                self.fail("an overload name that is not reserved", self.at - 1)
        for index in range(first + 1, self.at):
            _, before, column = self.tokens[index - 1]
            if column + len(before) != self.tokens[index][2]:
                self.fail("a name without white space", index)
        return OperatorName(namespace, name, overload)

    def arguments(self) -> tuple[Argument, ...]:
        arguments: list[Argument] = []
        names: set[str] = set()
        star = False
        defaulted = ""
        if self.skip(")"):
            return ()
        while True:
            if self.tokens[self.at][0] == "*":
                if star:
                    self.fail("an argument: '*' may occur only once")
                star = True
                self.at += 1
                if self.tokens[self.at][0] != ",":
                    self.fail("',' and a keyword-only argument after '*'")
            else:
                start = self.at
                argument = self.argument(star, names)
                if argument.default_text is not None:
                    defaulted = argument.name
                elif defaulted and not star:
                    self.fail(f"a default: {defaulted} before it has one", self.at, f"none for {argument.name}")
                if argument.annotation is not None:
                    self.carry(argument.annotation, start)
                arguments.append(argument)
            if self.skip(")"):
                return tuple(arguments)
            self.take(",", "',' or ')'")

    def argument(self, kwarg_only: bool, names: set[str]) -> Argument:
        type, annotation = self.type("an argument's type")
        name = self.take(NAME, "the argument's name")
        if name in names:
            self.fail("another name: no two arguments share one", self.at - 1)
        names.add(name)
        default = self.default(type) if self.skip("=") else None
        return Argument(name, type, default, annotation, kwarg_only)

    def default(self, type: Type) -> str:
        """The default's text, checked against the type."""
        tokens = self.tokens
        start = self.at
        column = tokens[start][2]
        if tokens[start][0] == "[":
            while tokens[self.at][0] not in ("]", ")", END):
                self.at += 1
        elif tokens[start][0] == "-":
            self.at += 1
        last = tokens[self.at]
        if last[0] in (END, ")", ","):
            self.fail("a default value" if self.at == start else "the rest of the default")
        self.at += 1
        text = self.text[column : last[2] + len(last[1])]
        try:
            read_default(type, text)
        except SchemaSyntaxError as error:
            raise SchemaSyntaxError(self.text, column + error.column, error.expected, error.found) from None
        return text

    def carry(self, annotation: Annotation, start: int) -> None:
        self.carried |= annotation.sets
        if annotation.is_write:
            if len(annotation.before) > 1:
                self.fail("one alias set: only a single set can be written", start + 2, f"{len(annotation.before)}")
            self.written |= annotation.sets

    def returns(self) -> tuple[Return, ...]:
        if self.tokens[self.at][0] != "(":
            return (self.single_return(),)
        self.at += 1
        if self.skip(")"):
            return ()
        found: list[Return] = []
        names: set[str] = set()
        while True:
            found.append(self.single_return())
            name = found[-1].name
            if name is not None:
                if name in names:
                    self.fail("another name: no two returns share one", self.at - 1)
                names.add(name)
            if self.skip(")"):
                return tuple(found)
            self.take(",", "',' or ')'")

    def single_return(self) -> Return:
        start = self.at
        if self.tokens[start][0] == "(":
            return Return(self.tuple_type())
        type, annotation = self.type("a return's type")
        if isinstance(type, OptionalType):
            self.fail("a return that is not optional: an undefined tensor is None without '?'", self.at - 1)
        if annotation is not None:
            self.check_return(annotation, start + 1)
        name = self.take(NAME, "a name") if self.tokens[self.at][0] == NAME else None
        if self.tokens[self.at][0] == "=":
            self.fail("no default: a return has none")
        return Return(type, name, annotation)

    def tuple_type(self) -> TupleType:
        self.take("(", "'('")
        elems = [self.type("a type")[0]]
        while not self.skip(")"):
            self.take(",", "',' or ')'")
            elems.append(self.type("a type")[0])
        return TupleType(tuple(elems))

    def check_return(self, annotation: Annotation, index: int) -> None:
        if annotation.is_shorthand:
            return  # a set of its own
        for name in annotation.before + annotation.after:
            if name not in self.carried:
                self.fail("an alias set of an argument", index + 1, f"'{name}', which no argument has")
        if annotation.is_write and self.written.isdisjoint(annotation.before):
            self.fail("a return that is not written, or '!' on its argument", index + 1, f"{annotation}, which is only read")

    def type(self, expected: str) -> tuple[Type, Annotation | None]:
        base = self.base_type(expected)
        type: Type = base
        annotation = None
        tokens = self.tokens
        kind = tokens[self.at][0]
        if kind == "(" or kind == "!":
            if base.canonical != "Tensor":
                self.fail(f"no annotation: only tensors alias, {base} does not")
            annotation = self.annotation()
            kind = tokens[self.at][0]
        while kind == "?" or kind == "[":
            if kind == "?":
                if isinstance(type, OptionalType):
                    self.fail("one '?'")
                self.at += 1
                type = optional_of(type)
            else:
                type = self.list_type(type)
            kind = tokens[self.at][0]
        return type, annotation

    def base_type(self, expected: str) -> BaseType:
        start = self.at
        name = self.take(NAME, expected)
        if name == "__torch__":
            while self.skip("."):
                name += "." + self.take(NAME, "the rest of the class's name")
        found = type_named(name)
        if found is None:
            self.fail(f"{expected} (Tensor, int, float, bool, str, Scalar, ...)", start)
        return found

    def list_type(self, elem: Type) -> Type:
        self.at += 1
        size = None
        if self.tokens[self.at][0] != "]":
            digits = self.take(NUMBER, "a length or ']'")
            size = int(digits) if digits.isdigit() else 0
            if size < 1:
                self.fail("a length of 1 or more", self.at - 1)
            if size > _LONGEST_BOOLS and elem.canonical == "bool":
                self.fail(f"a length of 1 to {_LONGEST_BOOLS} for bool", self.at - 1)
        self.take("]", "']'")
        return list_of(elem, size)

    def annotation(self) -> Annotation:
        if self.skip("!"):
            return Annotation((), True)
        self.take("(", "'('")
        before = self.sets()
        is_write = self.skip("!")
        after = self.sets() if self.skip("->") else ()
        self.take(")", "')', '|', '!' or '->'")
        if self.tokens[self.at][0] == "!":
            self.fail("no '!' after an annotation: write it inside, as in (a!)")
        return Annotation(before, is_write, after)

    def sets(self) -> tuple[str, ...]:
        if self.skip(WILDCARD):
            return (WILDCARD,)
        names = [self.take(NAME, "the name of an alias set, or '*'")]
        while self.skip("|"):
            names.append(self.take(NAME, "the name of an alias set"))
        return tuple(names)
