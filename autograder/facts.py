"""Numbers that others have measured on the released GPT-2 (124M) weights and put into print, with where they stand.

A model that gives these has the right weights, in the right places, and the right arithmetic around them. None of
them was measured here. Tolerances are those of the published tests: logits to 0.01, log-likelihoods to 1 in 1,000.
"""

from dataclasses import dataclass

HARNESS = "EleutherAI/lm-evaluation-harness tests/test_models.py"
HF_TEST = "huggingface/transformers tests/models/gpt2/test_modeling_gpt2.py"


@dataclass(frozen=True)
class Row:
    """The first entries of one token's embedding: no arithmetic at all, only the file."""

    token: int
    values: tuple[float, ...]
    source: str


@dataclass(frozen=True)
class Logits:
    """Logits at the last of these ids, by token; `largest` is the token with the largest of all."""

    ids: tuple[int, ...]
    values: dict[int, float]
    largest: int | None
    source: str


@dataclass(frozen=True)
class LogLikelihood:
    """The log-probability of a continuation, in nats; or, token by token, of a text after <|endoftext|>."""

    context: str
    continuation: str
    nats: float
    source: str
    each: tuple[float, ...] = ()


@dataclass(frozen=True)
class Greedy:
    """What a prompt is continued with when the most probable token is taken each time."""

    prompt: str
    continuation: str
    source: str


ROWS = (
    Row(
        15496,
        (-0.0686508, -0.132694, 0.0112033, -0.146658, -0.18417, -0.0357969, -0.217333, -0.171337, -0.0103861, -0.0141989),
        "a C++ port's tests, which print the first row of their input",
    ),
)

LOGITS = (
    Logits(
        (15496,),  # "Hello"
        {
            0: -35.23624,
            1: -35.32660,
            2: -38.97535,
            3: -39.39067,
            4: -37.65318,
            5: -38.67244,
            6: -36.02489,
            7: -36.48415,
            100: -43.31264,
            384: -40.13025,
            385: -38.99939,
            1000: -40.74981,
            10000: -41.98723,
            50000: -44.11378,
        },
        11,
        "two ports' tests, one through ONNX Runtime",
    ),
    Logits((15496, 50256), {}, 464, "a C++ port's tests"),
    Logits(
        (15496, 50256, 1234), {0: -76.941086, 1: -79.28483, 2: -80.43526, 3: -80.43415, 4: -80.22852}, 262, "a C++ port's tests"
    ),
)

MEAN_LOGIT = ((15496, 11, 314, 716), -111.89471436, "an ONNX Runtime port's tests")  # of all 4 x 50,257

LOG_LIKELIHOODS = (
    LogLikelihood("Hello", " World", -8.682319641113281, HARNESS),
    LogLikelihood(
        "A mult",
        "ilayer perceptron (MLP) is a class of feedforward artificial neural network (ANN)",
        -61.60536193847656,
        HARNESS,
    ),
    LogLikelihood(
        "<|endoftext|>",
        "We study empirical scaling laws for language model performance on the cross-entropy loss.",
        -95.00736,
        HARNESS,
        (
            *(-4.9599953, -8.069298, -8.308624, -10.178513, -8.906924, -1.9318912, -7.745445, -7.146077, -5.2072),
            *(-3.5882986, -1.9957212, -8.044922, -0.20841774, -5.1096807, -0.099879116, -8.888423, -4.6180487),
        ),
    ),
)

GREEDY = (
    Greedy(
        "The dog",
        " was found in a field near the intersection of West and West Streets.\n\nThe dog",
        HF_TEST,
    ),
    Greedy("Hello, my dog is a little", " bit of a mess. I'm not sure if he's going", HF_TEST),
    Greedy("Today, I", "'m going to be doing a lot of research on this. I", HF_TEST),
    Greedy(
        "The quick brown fox jumps over the lazy",
        ", lazy fox and they both fall to the ground",
        HARNESS,
    ),
    Greedy(
        "Alan Turing theorized that computers would one day become",
        " the most powerful machines on the planet.\n\nThe computer is a machine that can perform complex calculations, "
        "and it can perform these calculations in a way that is very similar to the human brain.",
        "jaymody/picoGPT README",
    ),
    Greedy(
        "Every effort moves",
        " forward, but it's not enough.\n\n\"I'm not going to sit here and say, 'I'm not going to do this,'",
        "rasbt/LLMs-from-scratch ch05/02",
    ),
)

# Karpathy's llm.c: the text is cut at empty lines, 50256 goes in front of each piece; 4 x 64 tokens from the start.
BATCH_IDS = "f3cb1f678d40cf5a120662b12a20fdacc5bd2e08c13ebb230a93e9f6f82f1df4"  # of the first 257 ids as little-endian uint16
BATCH_LOSS = (5.270007, "karpathy/llm.c test_gpt2.c, step 0")
