"""Let a GPT-2 continue a text, token by token.

Your own modules/12_gpt2/gpt2.py writes where it is complete, with the solutions in the places of the modules that you
have not written yet; the solution's does where it is not. The text goes to the standard output, all else to the
standard error.
"""

import argparse
import codecs
import os
import sys
import time

SMALL = "small"


def arguments(parser):
    parser.add_argument("prompt", help="the text to go on from; empty: a new text")
    parser.add_argument(
        "--model",
        default=SMALL,
        help="small (comes with the course), gpt2, gpt2-medium, ..., a folder or a file (default: small)",
    )
    parser.add_argument("--temperature", type=_at_least(0), default=0.8, help="0 takes the most probable token (default: 0.8)")
    parser.add_argument("--top-k", type=int, help="draw from the k most probable tokens only")
    parser.add_argument(
        "--top-p", type=float, default=0.95, help="draw from the most probable tokens that sum to p (default: 0.95)"
    )
    parser.add_argument("--seed", type=int, help="draw the same text again (default: a new seed, which is printed)")
    parser.add_argument("--max-new-tokens", type=_at_least(0, int), default=100, metavar="N", help="(default: 100)")
    parser.add_argument("--parts", choices=("own", "auto", "solutions"), default="auto", help="whose code runs (default: auto)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")


def _at_least(lowest: float, kind: type = float):
    def read(text: str):
        if not (number := kind(text)) >= lowest:
            raise argparse.ArgumentTypeError(f"{text} is below {lowest}")
        return number

    read.__name__ = kind.__name__
    return read


def run(arguments) -> int:
    import torch

    from autograder.assemble import END, Assembled
    from autograder.checkpoints import verified
    from autograder.weights import find

    if arguments.top_k is not None and arguments.top_k < 1:
        raise ValueError(f"--top-k is {arguments.top_k}, expected at least 1")
    if not 0 < arguments.top_p <= 1:
        raise ValueError(f"--top-p is {arguments.top_p}, expected a number above 0 and at most 1")
    file = verified("small/model.safetensors") if arguments.model == SMALL else find(arguments.model)
    parts = Assembled(arguments.parts)
    model = parts.gpt2.from_pretrained(file).to(arguments.device)
    vocabulary = parts.vocabulary(model.config.vocab_size, file)
    ids = vocabulary.encode(arguments.prompt or END)
    seed = int.from_bytes(os.urandom(4), "big") if arguments.seed is None else arguments.seed
    stream = Stream(ids, vocabulary, model.config.n_ctx, sys.stdout)
    _say(f"{parts.words}; seed {seed}")
    print(arguments.prompt, end="", flush=True)
    start = time.perf_counter()
    with stream.watching(model):
        result = parts.gpt2.generate(
            model,
            torch.tensor([ids], device=arguments.device),
            arguments.max_new_tokens,
            temperature=arguments.temperature,
            top_k=arguments.top_k,
            top_p=arguments.top_p if arguments.top_p < 1 else None,
            generator=torch.Generator(arguments.device).manual_seed(seed),
            stop_id=vocabulary.end,
        )
    new = stream.finish(result[0].tolist())
    seconds = time.perf_counter() - start
    _say(f"{new} tokens in {seconds:.2f} s, {new / seconds:.1f} tokens a second")
    return 0


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


class Stream:
    """Writes each token as soon as the model is asked for the next one, so that any `generate` can be watched.

    What the model is shown ends with the newest token. A token may hold half a character: its bytes wait for the rest.
    """

    def __init__(self, prompt: list[int], vocabulary, n_ctx: int, out):
        self.ids, self.n_prompt = list(prompt), len(prompt)
        self.vocabulary, self.n_ctx, self.out = vocabulary, n_ctx, out
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.asked = False

    def watching(self, model):
        return model.register_forward_pre_hook(self._before, with_kwargs=True)

    def _before(self, model, args, kwargs) -> None:
        ids = args[0] if args else kwargs["ids"]
        cache = args[1] if len(args) > 1 else kwargs.get("cache")
        shown = ids.shape[1] + (0 if cache is None else cache.length)
        if self.asked and shown == min(len(self.ids) + 1, self.n_ctx):
            self._put(int(ids[0, -1]))
        self.asked = True

    def _put(self, token: int) -> None:
        self.ids.append(token)
        if token != self.vocabulary.end:
            known = token < len(self.vocabulary.bytes)
            self._write(self.decoder.decode(self.vocabulary.bytes[token]) if known else "\N{REPLACEMENT CHARACTER}")

    def _write(self, text: str) -> None:
        encoding = self.out.encoding or "utf-8"
        self.out.write(text.encode(encoding, "replace").decode(encoding))
        self.out.flush()

    def finish(self, result: list[int]) -> int:
        """Write what is left of the result; returns the number of new tokens."""
        if result[: len(self.ids)] != self.ids:  # a `generate` that asks the model otherwise than token by token
            self._write("\n\nThat was not the result, which is:\n\n")
            self.ids = result[: self.n_prompt]
        for token in result[len(self.ids) :]:
            self._put(token)
        self._write(self.decoder.decode(b"", final=True) + "\n")
        return len(result) - self.n_prompt
