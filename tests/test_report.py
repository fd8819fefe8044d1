"""The words of the report, line by line."""

from helpers import report_lines

QUERIES = """
def attention(q, k, v):
    return softmax(attention_scores(q, k), dim=-2) @ v
"""


def test_first_divergence_and_named_mistake(tmp_path):
    lines = report_lines(tmp_path, "03", "attention", QUERIES)
    assert lines[0] == "03_attention  attention                         1 of 3 points     seed 7"
    assert lines[1] == "  match             q k v scores"
    assert lines[2] == "  first to differ   pattern (B, H, Tq, Tk) = (2, 3, 5, 7)"
    assert lines[3].startswith("  at                [0, 0, 0, 0] yours 0.")
    assert " entries, largest gap " in lines[3]
    assert lines[4] == "  same as           softmax-over-queries: which axis must sum to 1 for one reader?"
    assert lines[5].startswith("  look at           ")
    assert lines[5].endswith('attention · lesson "One reader, one distribution"')
    assert len(lines) == 6


def test_exception_shows_the_learners_line_only(tmp_path):
    lines = report_lines(tmp_path, "03", "merge_heads", "def merge_heads(z):\n    return z.no_such_method()\n")
    assert lines[1:3] == ["  match             z", "  first to differ   merged (B, T, C) = (2, 5, 12)"]
    raised = "AttributeError: 'Tensor' object has no attribute 'no_such_method', at: return z.no_such_method()"
    assert lines[3] == f"  raised            {raised}"
    assert not any("torch/" in line for line in lines)


def test_unnamed_mistake_states_facts(tmp_path):
    patch = "def attention_scores(q, k):\n    return q @ k.mT * 3 / q.shape[-1] ** 0.5\n"
    lines = report_lines(tmp_path, "03", "attention_scores", patch)
    assert "  true of yours     yours is 3 times the expected tensor" in lines
    assert not any(line.startswith("  same as") for line in lines)


def test_points_are_kept_where_only_a_callee_is_wrong(tmp_path):
    patch = "def attention_scores(q, k):\n    return q @ k.mT\n"
    assert report_lines(tmp_path, "03", "attention", patch) == [
        "03_attention  attention                         3 of 3 points     seed 7",
        "                    right, but it rests on attention_scores: mend that first",
    ]


def test_forbidden_call_is_named_with_its_line(tmp_path):
    patch = "def softmax(x, dim=-1):\n    return torch.nn.functional.softmax(x, dim=dim)\n"
    lines = report_lines(tmp_path, "03", "softmax", patch)
    assert lines[1] == "  forbidden         torch.nn.functional.softmax may not be called in this exercise: write it out"


def test_hang_is_stopped_and_placed(tmp_path):
    patch = "def softmax(x, dim=-1):\n    while True:\n        pass\n"
    lines = report_lines(tmp_path, "03", "softmax", patch, seconds=0.3)
    assert lines[1].startswith("  stopped           still running after 0.3 s on a (3, 4, 5) tensor, at line ")


def test_hang_that_swallows_exceptions_is_stopped(tmp_path):
    patch = (
        "def softmax(x, dim=-1):\n    for _ in range(3):\n        try:\n            while True:\n                pass\n"
        "        except BaseException:\n            pass\n    return x\n"
    )
    lines = report_lines(tmp_path, "03", "softmax", patch, seconds=0.3)
    assert lines[1].startswith("  stopped           still running after 0.3 s")


def test_missing_function_is_named_with_its_signature(tmp_path):
    lines = report_lines(tmp_path, "03", "softmax", "del softmax\n")
    assert "  raised            attention.py has no softmax: expected softmax(x, dim=-1)" in lines


def test_syntax_error_names_the_line(tmp_path):
    lines = report_lines(tmp_path, "03", "softmax", "def softmax(x, dim=-1)\n    return x\n")
    assert lines[1].startswith("  raised            SyntaxError: expected ':', at: def softmax(x, dim=-1)")


def test_reports_have_at_most_eight_lines(tmp_path):
    patch = """
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w).chunk(3, dim=-1))
    return merge_heads(torch.softmax(q @ k.mT, -1) @ v) @ c_proj_w.T
"""
    lines = report_lines(tmp_path, "03", "multi_head_attention", patch)
    assert len(lines) <= 8
    assert sum(line.startswith("  same as") for line in lines) >= 3
