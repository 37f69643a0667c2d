"""The text: the pages that Python's `help()` shows about its language, as numbers for characters."""

from __future__ import annotations

from pydoc_data.topics import topics

import turnout
from turnout import Tensor


class Text:
    """A text in which each character is a number. The characters are those of all pages, whichever of them are read.

    characters  every character, in order
    tokens      the text as numbers, int64
    """

    def __init__(self, topic: str = "", device: str = "cpu") -> None:
        everything = "\n".join(topics[name] for name in sorted(topics))
        self.characters = sorted(set(everything))
        self._numbers = {character: i for i, character in enumerate(self.characters)}
        self.tokens = turnout.tensor(self.encode(topics[topic] if topic else everything), device=device)

    def encode(self, text: str) -> list[int]:
        """The numbers of characters. Raises KeyError for a character that no page has."""
        return [self._numbers[character] for character in text]

    def decode(self, tokens: list[int]) -> str:
        """The text of numbers."""
        return "".join(self.characters[token] for token in tokens)

    def batch(self, count: int, length: int) -> tuple[Tensor, Tensor]:
        """Pieces of the text, [count, length], and the characters that follow each of theirs."""
        starts = turnout.randint(0, len(self.tokens) - length, (count, 1), device=self.tokens.device)
        places = starts + turnout.arange(length, device=self.tokens.device)
        return self.tokens[places], self.tokens[places + 1]
