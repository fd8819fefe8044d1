"""The search for mistakes: pairs drawn at random, recordings of any code style, no false accusation."""

import random

import pytest
import torch
from helpers import grade_patch

from autograder.compare import compare
from autograder.course import find, ready
from autograder.diagnose import Observation, Search
from autograder.locate import Recording, locate
from autograder.probe import Outcome
from autograder.samples import samples
from autograder.steps import Evaluator, Failed, compatible

PAIRS = 20


def _explained(case, exercise, faults, plain):
    observations = []
    for sample in plain:
        try:
            observations.append(Observation(sample, Outcome("value", Evaluator(case, exercise, sample.inputs).output(faults))))
        except Failed:
            return None
    return Search(case, exercise, observations).diagnose()


def _shows(case, exercise, fault, plain):
    """Whether the fault changes a value, and not a gradient alone."""
    evaluators = [Evaluator(case, exercise, sample.inputs) for sample in plain]
    try:
        return any(compare(one.output((fault,)), one.output()) for one in evaluators)
    except Failed:
        return True


def test_most_pairs_are_named_and_none_wrongly():
    """Two mistakes at once, drawn at random from those that leave the call alive.

    A pair that one mistake alone reproduces is drawn again: there one hides the other, and no grader could see both.
    """
    module = find("03")
    case, draw = module.case(), random.Random(3)
    named = tried = 0
    exercises = [exercise for exercise in case.exercises.values() if len(exercise.shown) > 1]
    while tried < PAIRS:
        exercise = draw.choice(exercises)
        pair = tuple(draw.sample(case.faults_of(exercise), 2))
        drawn = samples(exercise, draw.randrange(1000), "cpu", None)
        plain = [sample for sample in drawn if not sample.variant and not sample.refused]
        seen = compatible(pair) and all(_shows(case, exercise, fault, plain) for fault in pair)
        found = _explained(case, exercise, pair, plain) if seen else None
        if found is None or len(found.mistakes) == 1:
            continue
        tried += 1
        named += set(found.mistakes) == set(pair)
    print(f"{named} of {PAIRS} pairs named")
    assert named >= 0.7 * PAIRS, f"{named} of {PAIRS} pairs named"


@pytest.mark.parametrize("style", ["whole", "loop over heads", "heads beside batch", "einsum layout"])
def test_tensors_are_found_in_any_layout(style):
    tensor = torch.randn(2, 3, 5, 7)
    recorded = {
        "whole": [tensor],
        "loop over heads": [tensor[:, h].clone() for h in range(3)],
        "heads beside batch": [tensor.reshape(6, 5, 7)],
        "einsum layout": [tensor.permute(1, 3, 0, 2).contiguous()],
    }[style]
    noise = [torch.randn(2, 3, 5, 7), torch.randn(2, 5, 7)]
    assert Recording(noise + recorded, 1e-5).holds(tensor)
    assert not Recording(noise, 1e-5).holds(tensor)


def test_scrambled_heads_are_not_taken_for_right_ones():
    x = torch.randn(2, 5, 12)
    right, scrambled = x.view(2, 5, 3, 4).transpose(1, 2), x.view(2, 3, 5, 4)
    assert not Recording([scrambled], 1e-5).holds(right)


def test_a_fused_step_does_not_hide_what_comes_after():
    """Where `scores` is never computed by itself, a matching `pattern` shows that it was right."""
    module = find("03")
    case = module.case()
    exercise = case.exercises["attention"]
    sample = samples(exercise, 1, "cpu", None)[0]
    expected = Evaluator(case, exercise, sample.inputs).shown()
    recording = Recording([expected["pattern"]], 1e-5)
    assert locate(case, exercise, recording, expected) == (["scores", "pattern"], "z")


def test_nothing_is_named_where_no_known_mistake_fits(tmp_path):
    patch = "def attention(q, k, v):\n    return softmax(attention_scores(q, k)) @ v + 0.01\n"
    result = grade_patch(tmp_path, "03", "attention", patch)
    assert result.status == "fail" and result.mistakes == [] and result.first_difference == "z"
    assert "yours is the expected tensor plus 0.01 everywhere" in result.facts


def test_every_fault_has_a_text_that_asks():
    for module in ready():
        for fault in module.case().faults.values():
            assert fault.text.rstrip().endswith("?"), f"{module.name}: {fault.id}"


def test_a_second_mistake_is_explained_without_the_first(tmp_path):
    """Where a callee is wrong too, the caller is run, recorded and explained with the right callee."""
    patch = (
        "def softmax(x, dim=-1):\n    return x.exp()\n\n\n"
        "def attention(q, k, v):\n    return softmax(attention_scores(q, k) * 2, dim=-1) @ v + 0.5\n"
    )
    result = grade_patch(tmp_path, "03", "attention", patch)
    assert result.status == "fail" and result.mistakes == [] and result.rests_on == []
    assert result.matched == ["q", "k", "v", "scores"] and result.first_difference == "pattern"
