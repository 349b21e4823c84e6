"""Quizzes: one right choice, a word for each other, nothing given away, every slip there, facts computed."""

import html.parser
import math
import re

import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tinytx.model.transformer import record_hidden_states
from tinytx_course.lessons import written_lessons
from tinytx_course.quizzes import QUIZZES, quiz
from tinytx_course.quizzes.display import as_html, as_widget, feedback
from tinytx_course.quizzes.questions import Choice, Question

QUESTIONS = [(slug, question) for slug in QUIZZES for question in quiz(slug).questions]
each_question = pytest.mark.parametrize(
    ("slug", "question"), QUESTIONS, ids=[f"{slug}-{question.key}" for slug, question in QUESTIONS]
)
#: The slips of understanding seen in reports, each with the lesson it belongs to.
SLIPS = {
    "mask-of-one-and-minus-infinity": {"attention_and_masks"},
    "context-from-the-right": {"attention_and_masks"},
    "causal-mask-only-in-decoders": {"attention_and_masks"},
    "sine-for-even-tokens": {"positions"},
    "last-frequency-off-by-one": {"positions"},
    "one-norm-instead-of-two": {"the_block", "counting_parameters"},
    "heads-for-projections": {"heads_and_cost", "counting_parameters"},
    "attention-always-cheaper": {"heads_and_cost"},
    "norm-times-heads": {"counting_parameters"},
    "curves-will-meet": {"transfer"},
    "barthez-is-an-encoder": {"masked_or_causal"},
}


def question(slug, key):
    return next(found for found in quiz(slug).questions if found.key == key)


def rejected(slug, key):
    return [choice.text for choice in question(slug, key).choices if not choice.right]


def test_every_written_lesson_but_the_first_has_a_quiz(root):
    assert {lesson.slug for lesson in written_lessons(root)[1:] if lesson.number <= 10} <= set(QUIZZES)


@pytest.mark.parametrize("slug", QUIZZES)
def test_a_quiz_has_three_to_five_questions_with_names_of_their_own(slug):
    questions = quiz(slug).questions
    assert 3 <= len(questions) <= 5
    assert len({question.key for question in questions}) == len(questions)


@each_question
def test_one_choice_is_right_and_each_other_is_explained(slug, question):
    assert sum(choice.right for choice in question.choices) == 1
    assert len(question.choices) >= 3
    explanations = [choice.why for choice in question.choices]
    assert len(set(explanations)) == len(explanations)
    assert all(len(text.split()) >= 5 for text in explanations)
    assert not question.answer.slip


@each_question
def test_no_choice_stands_out_by_its_length(slug, question):
    lengths = [len(choice.text) for choice in question.choices]
    assert max(lengths) <= 1.6 * min(lengths)


def test_the_right_choice_is_the_longest_or_the_shortest_no_more_often_than_chance_has_it():
    fair = sum(1 / len(question.choices) for _, question in QUESTIONS)
    for extreme in (max, min):
        standing_out = 0
        for _, question in QUESTIONS:
            lengths = [len(choice.text) for choice in question.choices]
            most = extreme(lengths)
            standing_out += lengths.count(most) == 1 and len(question.answer.text) == most
        assert standing_out <= fair


def test_the_right_choice_stands_at_every_place_and_nowhere_most_of_the_time():
    places = [question.choices.index(question.answer) for _, question in QUESTIONS]
    for place in range(4):
        assert 0.1 < places.count(place) / len(places) < 0.4
    for slug in QUIZZES:
        assert len({q.choices.index(q.answer) for q in quiz(slug).questions}) > 1, slug


def test_the_order_follows_from_the_texts_and_not_from_how_they_are_written_down():
    choices = quiz("positions").questions[0].choices
    for order in (choices, choices[::-1], choices[2:] + choices[:2]):
        assert Question(key="where-sines-stand", prompt="?", choices=order).choices == choices


def test_no_question_choice_or_explanation_is_there_twice():
    texts = [question.prompt for _, question in QUESTIONS]
    texts += [choice.why for _, question in QUESTIONS for choice in question.choices]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("slip", SLIPS)
def test_every_slip_of_understanding_is_among_the_wrong_choices_of_its_lesson(slip):
    found = {slug for slug, question in QUESTIONS for choice in question.choices if choice.slip == slip}
    assert found == SLIPS[slip]


def test_no_slip_is_named_that_nobody_lists():
    assert {choice.slip for _, question in QUESTIONS for choice in question.choices} - {None} == set(SLIPS)


@pytest.mark.parametrize(
    ("choices", "complaint"),
    [
        ([("a", True), ("b", True)], "exactly one right choice, got 2"),
        ([("a", False), ("b", False)], "exactly one right choice, got 0"),
        ([("a", True), ("a", False)], "must differ"),
        ([("a", True), (" ", False)], "got an empty one"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(choices, complaint):
    with pytest.raises(ValueError, match=complaint):
        Question(key="k", prompt="?", choices=[Choice(text=t, why="w", right=r) for t, r in choices])


# ---- names


@pytest.mark.parametrize(
    ("name", "number"),
    [("positions", 3), (3, 3), ("03", 3), ("03_positions", 3), ("03_positions.ipynb", 3), ("Positions", 3)]
    + [("masks", 2), ("attention and masks", 2), ("block", 4), ("cost", 5), ("causal", 9), ("masked", 9)],
)
def test_a_quiz_is_found_by_slug_number_file_or_a_word_of_its_own(name, number):
    assert course.quiz(name).lesson.number == number


@pytest.mark.parametrize(("name", "near"), [("position", "'positions'"), ("mask", "'masks'")])
def test_an_unknown_quiz_is_answered_with_the_nearest(name, near):
    with pytest.raises(ValueError, match=f"a quiz is one of tokens, .*got '{name}'; did you mean .*{near}"):
        course.quiz(name)


@pytest.mark.parametrize("name", [0, 99, "", "the", "zzz", None])
def test_what_resembles_nothing_is_refused_without_a_guess(name):
    with pytest.raises(ValueError, match="a quiz is one of") as caught:
        course.quiz(name)
    assert "did you mean" not in str(caught.value)


# ---- on the screen


class Outline(html.parser.HTMLParser):
    """Collects the summaries and checks that tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.summaries = [], []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag == "summary":
            self.summaries.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "summary" in self.open:
            self.summaries[-1] += data


@pytest.mark.parametrize("slug", QUIZZES)
def test_without_a_kernel_each_choice_folds_its_own_explanation(slug):
    asked = quiz(slug)
    bundle = asked._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    outline = Outline()
    outline.feed(bundle["text/html"])
    assert outline.open == []
    texts = [choice.text.replace("`", "") for q in asked.questions for choice in q.choices]
    assert [summary[3:] for summary in outline.summaries] == texts
    assert "<script" not in bundle["text/html"] and "style=" not in bundle["text/html"]
    assert bundle["text/html"].count("<p>Right. ") == len(asked.questions)
    assert "Right." not in bundle["text/plain"] and asked.questions[0].prompt[:20] in repr(asked)


def test_signs_that_mean_something_in_html_are_shown_as_they_are():
    shown = as_html("T", [Question(key="k", prompt="`a<b`?", choices=[
        Choice(text="n < d & so", why="w", right=True), Choice(text="<b>", why="v")])])  # fmt: skip
    assert "<code>a&lt;b</code>?" in shown and "n &lt; d &amp; so" in shown and "<b>" not in shown


def test_picking_a_radio_button_shows_the_explanation_of_that_choice_in_words():
    asked = quiz("masks")
    boxes = as_widget(asked.title, asked.questions).children[1:]
    assert len(boxes) == len(asked.questions)
    for number, (box, question) in enumerate(zip(boxes, asked.questions, strict=True), 1):
        prompt, buttons, answer = box.children
        assert buttons.value is None and buttons.description == f"Question {number}"
        assert len(buttons.options) == len(question.choices)
        for place, choice in enumerate(question.choices):
            buttons.value = place
            words = re.sub(r"<[^>]+>", "", answer.value)
            assert words.startswith(f"{'ABCD'[place]}: {'Right.' if choice.right else 'Not quite.'}")
            assert choice.why[:15] in html.unescape(words) and 'role="status"' in answer.value


@pytest.mark.slow
def test_in_a_live_kernel_it_is_a_widget_and_published_it_is_the_folded_form(tmp_path, root):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("jupytext")
    from tinytx_course.building.notebooks import Run, execute, kernel_environment, normalise
    from tinytx_course.lessons import LESSONS
    from tinytx_course.site.pages import notebook_to_html

    cell = nbformat.v4.new_code_cell("import tinytx as tx\ntx.quiz('masks')")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    run: Run = execute(LESSONS[0], notebook, tmp_path, kernel_environment(root))
    assert run.failure is None
    (output,) = notebook.cells[0].outputs
    assert "application/vnd.jupyter.widget-view+json" in output.data
    (output,) = normalise(notebook, root).cells[0].outputs
    assert set(output.data) == {"text/plain", "text/html"}
    page = notebook_to_html(notebook)
    assert page.count("<details>") == sum(len(q.choices) for q in quiz("masks").questions)


# ---- facts


def test_a_new_word_is_cut_into_known_pieces_and_a_larger_vocabulary_gives_fewer():
    texts = [review.text for review in tx.World().reviews(300, seed=1)]
    small, large = (tx.Tokenizer.train(texts, vocab_size=size) for size in (200, 400))
    held_out = [review.text for review in tx.World().reviews(50, seed=2)]
    pieces = [sum(len(tokenizer.encode(text)) for text in held_out) for tokenizer in (small, large)]
    assert pieces[0] / 2 < pieces[1] < pieces[0]
    ids = large.encode("pastourelle")
    assert len(ids) > 1 and large.decode(ids) == "pastourelle"


def test_a_mask_of_one_and_minus_infinity_does_what_its_explanation_says():
    scores, allowed = torch.tensor([-1.0, 2.0, -3.0]), torch.tensor([True, True, False])
    rule = torch.zeros(3).masked_fill(~allowed, -math.inf)
    mixture = torch.ones(3).masked_fill(~allowed, -math.inf)
    torch.testing.assert_close((scores + mixture).softmax(0), (scores + rule).softmax(0))
    assert (scores * mixture)[2] == math.inf
    late = scores.softmax(0) * allowed
    changed = torch.tensor([-1.0, 2.0, 5.0]).softmax(0) * allowed
    assert late.sum() < 1 and not torch.allclose(late, changed)
    weights = tx.attention_weights(torch.randn(4, 3), torch.randn(6, 3))
    assert weights.shape == (4, 6)
    torch.testing.assert_close(weights.sum(-1), torch.ones(4))


def test_positions_hold_what_the_choices_say():
    table = tx.sinusoidal_positions(3, 4, base=100.0)
    assert question("positions", "by-hand").answer.text == f"{table[2, 2]:.2f}"
    assert {f"{table[2, 0]:.2f}", f"{table[2, 3]:.2f}", f"{math.sin(2 / 100):.2f}"} == set(
        rejected("positions", "by-hand")
    )
    wide = tx.sinusoidal_positions(5, 200).double()
    i = 99  # the last frequency, in the last two columns
    angle = torch.arange(5).double() / 10_000 ** (2 * i / 200)
    last_pair = torch.stack([angle.sin(), angle.cos()], 1)
    torch.testing.assert_close(wide[:, 2 * i : 2 * i + 2], last_pair, atol=1e-6, rtol=0)
    assert 2 * i + 2 == wide.shape[1]
    torch.testing.assert_close(wide[3:], wide[:2] @ tx.shift_matrix(3, 200).T, atol=1e-6, rtol=0)


def test_without_positions_and_mask_rows_go_where_the_words_go():
    config = tx.TransformerConfig(
        vocab_size=11, d_model=12, n_heads=3, n_layers=2, d_ff=7, causal=False, positions="none"
    )
    body, ids, order = tx.Transformer(config), torch.tensor([[3, 1, 4, 5, 9]]), [4, 2, 0, 3, 1]
    torch.testing.assert_close(body(ids[:, order]), body(ids)[:, order])


def test_a_block_that_adds_nothing_passes_on_what_came_in():
    config = tx.TransformerConfig(vocab_size=11, d_model=12, n_heads=3, n_layers=2, d_ff=7)
    body = tx.Transformer(config)
    norms = [m for m in body.blocks[0].modules() if isinstance(m, torch.nn.LayerNorm)]
    assert len(norms) == 2
    with torch.no_grad():
        for parameter in body.blocks[0].parameters():
            parameter.zero_()
    with record_hidden_states(body) as hidden:
        body(torch.tensor([[1, 2, 3]]))
    torch.testing.assert_close(hidden[0], hidden[1])


def count(n_heads=2, head="lm", **changes):
    return tx.parameter_table(tx.PRESETS["seed-lab"].replace(n_heads=n_heads, **changes), head=head)


def test_counts_are_those_of_the_models():
    language_model, classifier = count().total, count(head="classifier").total
    assert f"{language_model:,}" in question("counting_parameters", "head-swap").prompt
    wrong = [language_model + 402, classifier - 2, classifier - 20_000]
    assert question("counting_parameters", "head-swap").answer.text.startswith(f"{classifier:,}:")
    assert sorted(text.split(":")[0] for text in rejected("counting_parameters", "head-swap")) == sorted(
        f"{number:,}" for number in wrong
    )
    assert count(n_heads=2).total == count(n_heads=8).total
    body = tx.LanguageModel(tx.PRESETS["seed-lab"].replace(n_heads=4)).body
    norms = [m for m in body.blocks[0].modules() if isinstance(m, torch.nn.LayerNorm)]
    held = sum(p.numel() for norm in norms for p in norm.parameters())
    assert question("counting_parameters", "norms").answer.text.startswith(f"{held}:")
    attention = tx.MultiHeadAttention(d_model=200, n_heads=2)
    assert tx.count_parameters(attention) == 160_800 == 4 * 200**2 + 800


def test_the_largest_term_of_the_base_transformer_is_the_feed_forward():
    base = tx.TransformerConfig(
        vocab_size=37_000, d_model=512, n_heads=8, n_layers=6, d_ff=2048, norm="last", tie_embeddings=True
    )
    table = tx.parameter_table(base, head="translation")
    held = {"embedding": 0, "attention": 0, "feed": 0}
    for row in table.rows:
        for word, names in {"embedding": ("token_embed",), "attention": ("proj,", "_proj, ", "out_proj"),
                            "feed": ("up_proj", "down_proj")}.items():  # fmt: skip
            if any(name in row.name for name in names):
                held[word] += row.count * row.times
    assert {word: round(count / 1e6) for word, count in held.items()} == {
        "embedding": 19, "attention": 19, "feed": 25,
    }  # fmt: skip
    assert round(table.total / 1e6) == 63


@pytest.mark.slow
def test_looking_right_helps_articles_more_than_stops_nouns_and_last_words():
    world = tx.World()
    articles = {"le", "la", "les", "l'", "un", "une", "des"}
    gains = {"article": [], "stop": [], "noun": [], "last": []}
    for review in world.reviews(12, seed=5):
        words = review.words
        for t, word in enumerate(words[1:], 1):
            if word in articles:
                kind = "article"
            elif word == ".":
                kind = "stop"
            elif words[t - 1] in articles:
                kind = "noun"
            elif t == len(words) - 2:
                kind = "last"
            else:
                continue
            before, both = world.next_word(words[:t])[word], world.fill(words, t)[word]
            gains[kind].append(math.log(both / before))
    means = {kind: sum(values) / len(values) for kind, values in gains.items()}
    assert min(len(values) for values in gains.values()) >= 8
    assert means["article"] > 1.2 * max(mean for kind, mean in means.items() if kind != "article"), means


def test_numbers_of_pretraining():
    first = question("pretraining", "first-loss").answer.text
    assert f"About {math.log(1000):.1f} nats" in first
    assert question("pretraining", "perplexity").answer.text == f"{math.exp(2):.1f}"
    assert {f"{2**2:.1f}", "2.0", f"{math.exp(-2):.1f}"} == set(rejected("pretraining", "perplexity"))


def test_softmax_before_cross_entropy_leaves_the_loss_near_the_logarithm_of_the_vocabulary():
    perfect = torch.full((1, 1000), -50.0)
    perfect[0, 7] = 50.0
    target = torch.tensor([7])
    best = torch.nn.functional.cross_entropy(perfect.softmax(-1), target)
    assert 0 < math.log(1000) - best < 1.01
    assert torch.nn.functional.cross_entropy(perfect, target) < 1e-6


def test_feedback_begins_with_a_word_and_not_with_a_colour():
    for _, asked in QUESTIONS:
        for choice in asked.choices:
            assert feedback(choice).startswith("Right. " if choice.right else "Not quite. ")
