"""Count the parameters of a model from its config.json, part by part.

Asks for a guess of the MLP's share first.
"""


def arguments(parser):
    parser.add_argument("config", metavar="CONFIG.json", help="a Hugging Face config.json of GPT-2 or of a Llama-like model")
    parser.add_argument("--no-guess", action="store_true", help="do not ask for a guess")


def run(arguments) -> int:
    from autograder.count import count

    return count(arguments.config, not arguments.no_guess)
