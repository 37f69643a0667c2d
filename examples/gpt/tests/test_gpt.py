"""The program learns, goes on from its file, and samples characters of its text."""

import turnout
from turnout_gpt import program
from turnout_gpt.model import GPT, Sizes, sample
from turnout_gpt.text import Text

SMALL = ["--layers", "1", "--width", "32", "--heads", "2", "--context", "16", "--batch", "8", "--characters", "20"]


def losses(text):
    line = next(line for line in text.splitlines() if line.startswith("loss "))
    return [float(word) for word in line.replace(",", " ").split() if word[0].isdigit()][:2]


def test_it_learns_and_goes_on_from_its_file(tmp_path, capsys):
    file = str(tmp_path / "weights.safetensors")
    program.main([*SMALL, "--steps", "30", "--rate", "0.01", "--save", file])
    first, last = losses(capsys.readouterr().out)
    assert last < first - 0.5
    program.main([*SMALL, "--steps", "3", "--topic", "lambda", "--load", file])
    assert losses(capsys.readouterr().out)[0] < first - 0.5


def test_each_prediction_depends_on_what_is_before_it_alone():
    turnout.manual_seed(0)
    model = GPT(Sizes(10, context=8, layers=2, heads=2, width=16))
    tokens = turnout.randint(0, 10, (1, 8))
    changed = tokens.clone()
    changed[0, 5:] = 0
    assert turnout.allclose(model(tokens)[:, :5], model(changed)[:, :5], atol=1e-6)
    assert len(sample(model, [1], 12)) == 12


def test_characters_are_numbers_and_back():
    text = Text("lambda")
    assert text.decode(text.encode("lambda")) == "lambda"
    tokens, targets = text.batch(3, 5)
    assert tokens[:, 1:].equal(targets[:, :-1])
