"""Quizzes: one right choice, feedback on each other, nothing given away, stated facts recomputed."""

import html.parser
import math
import re

import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tinytx.transformer import LanguageModel
from tinytx_course.lessons import LESSONS
from tinytx_course.quizzes.quiz import QUIZZES, Choice, Question, Quiz, quiz

QUESTIONS = [(slug, question) for slug in QUIZZES for question in quiz(slug).questions]
each_question = pytest.mark.parametrize(
    "slug, question", QUESTIONS, ids=[f"{s}-{q.key}" for s, q in QUESTIONS]
)


def question(slug, key):
    return next(found for found in quiz(slug).questions if found.key == key)


def rejected(slug, key):
    return [choice.text for choice in question(slug, key).choices if not choice.right]


@pytest.mark.parametrize("slug", QUIZZES)
def test_a_quiz_has_three_to_five_questions_whose_right_choice_moves(slug):
    questions = quiz(slug).questions
    assert 3 <= len(questions) <= 5
    assert len({q.choices.index(q.answer) for q in questions}) > 1


@each_question
def test_every_choice_is_explained_and_none_is_conspicuous_by_its_length(slug, question):
    assert len(question.choices) >= 3
    explanations = [choice.why for choice in question.choices]
    assert len(set(explanations)) == len(explanations)
    assert all(len(text.split()) >= 5 for text in explanations)
    lengths = [len(choice.text) for choice in question.choices]
    assert max(lengths) <= 1.6 * min(lengths)


@pytest.mark.parametrize("extreme", [max, min])
def test_the_right_choice_is_the_longest_or_the_shortest_no_more_often_than_by_chance(extreme):
    conspicuous = 0
    for _, question in QUESTIONS:
        lengths = [len(choice.text) for choice in question.choices]
        most = extreme(lengths)
        conspicuous += lengths.count(most) == 1 and len(question.answer.text) == most
    assert conspicuous <= sum(1 / len(question.choices) for _, question in QUESTIONS)


def test_the_right_choice_is_at_every_letter_and_at_none_most_of_the_time():
    places = [question.choices.index(question.answer) for _, question in QUESTIONS]
    assert all(0.1 < places.count(place) / len(places) < 0.4 for place in range(4))


def test_the_order_follows_from_the_texts_and_not_from_how_they_are_written_down():
    choices = quiz("positions").questions[0].choices
    for order in (choices, choices[::-1], choices[2:] + choices[:2]):
        assert Question(key="where-sines-are", prompt="?", choices=order).choices == choices


@pytest.mark.parametrize("choices", [["a+", "b+"], ["a", "b"], ["a+", "a"], ["a+", " "]])
def test_a_question_that_cannot_be_asked_is_refused(choices):
    with pytest.raises(ValueError, match="'k'"):
        Question(
            key="k", prompt="?", choices=[Choice(text=c.strip("+"), why="w", right="+" in c) for c in choices]
        )


# ---- names


@pytest.mark.parametrize(
    ("name", "slug"),
    [("positions", "positions"), ("03_positions.ipynb", "positions"), ("Positions", "positions"),
     ("masks", "attention_and_masks"), ("attention and masks", "attention_and_masks"),
     ("heads", "many_heads")],
)  # fmt: skip
def test_a_quiz_is_found_by_slug_file_or_a_word_of_its_own(name, slug):
    assert course.quiz(name).lesson.slug == slug


def test_a_quiz_is_found_by_the_number_of_its_lesson():
    for lesson in [lesson for lesson in LESSONS if lesson.slug in QUIZZES]:
        for name in (lesson.number, f"{lesson.number:02d}", lesson.name):
            assert course.quiz(name).lesson == lesson


@pytest.mark.parametrize(("name", "near"), [("position", "'positions'"), ("mask", "'masks'")])
def test_an_unknown_quiz_is_answered_with_the_nearest(name, near):
    with pytest.raises(ValueError, match=f"got '{name}'; did you mean .*{near}"):
        course.quiz(name)


@pytest.mark.parametrize("name", [99, "", "the", "zzz", None])
def test_what_resembles_no_quiz_is_refused_without_a_guess(name):
    with pytest.raises(ValueError) as caught:
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
def test_without_a_script_each_choice_folds_its_own_feedback(slug):
    asked = quiz(slug)
    bundle, _ = asked._repr_mimebundle_()
    still = asked.to_widget().still()
    assert still in bundle["text/html"]
    outline = Outline()
    outline.feed(bundle["text/html"])
    assert outline.open == []
    texts = [choice.text.replace("`", "") for q in asked.questions for choice in q.choices]
    assert [summary[3:] for summary in outline.summaries] == texts
    assert "<script" not in bundle["text/html"] and "style=" not in bundle["text/html"]
    assert still.count("<p>Right. ") == len(asked.questions)
    assert "Right." not in bundle["text/plain"] and asked.questions[0].prompt[:20] in repr(asked)


def test_characters_of_html_are_escaped():
    choices = [Choice(text="n < d & so", why="w", right=True), Choice(text="<b>", why="v")]
    question = Question(key="k", prompt="`a<b`? *So* 2 * 3.", choices=choices)
    asked = Quiz(lesson=LESSONS[2], questions=(question,))
    shown = asked.to_html()
    assert "<code>a&lt;b</code>? <em>So</em> 2 * 3." in shown
    assert "n &lt; d &amp; so" in shown and "<b>" not in shown


@pytest.mark.slow
def test_in_a_live_kernel_it_is_a_widget_and_published_it_comes_alive_by_script(tmp_path, root):
    import nbformat

    from tinytx_course.building.notebooks import execute, kernel_environment, normalise
    from tinytx_course.site.cells import notebook_to_html
    from tinytx_course.widgets.assets import explorers_in

    cell = nbformat.v4.new_code_cell("import tinytx_course as course\ncourse.quiz('masks')")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    assert execute(LESSONS[0], notebook, tmp_path, kernel_environment(root)).failure is None
    assert "application/vnd.jupyter.widget-view+json" in notebook.cells[0].outputs[0].data
    (output,) = normalise(notebook, root).cells[0].outputs
    assert set(output.data) == {"text/plain", "text/html"}
    shown = notebook_to_html(notebook, LESSONS[2])
    assert shown.count("<details>") == sum(len(q.choices) for q in quiz("masks").questions)
    assert explorers_in(shown) == {"questions"}


# ---- facts


def test_wrong_masks_do_what_their_explanations_say():
    scores, allowed = torch.tensor([-1.0, 2.0, -3.0]), torch.tensor([True, True, False])
    rule = torch.zeros(3).masked_fill(~allowed, -math.inf)
    mixture = torch.ones(3).masked_fill(~allowed, -math.inf)
    torch.testing.assert_close((scores + mixture).softmax(0), (scores + rule).softmax(0))
    assert (scores * mixture)[2] == math.inf
    late = scores.softmax(0) * allowed
    changed = torch.tensor([-1.0, 2.0, 5.0]).softmax(0) * allowed
    assert late.sum() < 1 and not torch.allclose(late, changed)
    assert (scores * mixture).softmax(0).isnan().all()
    module = torch.nn.MultiheadAttention(6, 2, batch_first=True)
    x, real = torch.randn(1, 3, 6), torch.ones(1, 3, dtype=torch.bool)
    assert module(x, x, x, key_padding_mask=real)[0].isnan().all()  # True is "blocked" there
    silent, _ = module(x, x, x, key_padding_mask=real, need_weights=False)
    torch.testing.assert_close(silent, module.out_proj.bias.expand_as(x))


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
    body = LanguageModel(tx.PRESETS["seed-lab"].replace(n_heads=4)).body
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
    names = {"embedding": "token_embed", "attention": "proj,|_proj, |out_proj", "feed": "up_proj|down_proj"}
    for row in table.rows:
        for word, pattern in names.items():
            held[word] += row.count * row.times if re.search(pattern, row.name) else 0
    millions = {word: round(n_params / 1e6) for word, n_params in held.items()}
    assert millions == {"embedding": 19, "attention": 19, "feed": 25}
    assert round(table.total / 1e6) == 63


def test_numbers_of_the_question_on_layer_norm():
    token, asked = torch.tensor([1.0, 3.0, 5.0, 7.0]), question("the_block", "biased-variance")
    centred, why = token - token.mean(), {choice.text: choice.why for choice in asked.choices}
    assert f"largest number of {(centred / token.std()).max():.2f}" in asked.prompt
    right = f"{torch.nn.functional.layer_norm(token, (4,)).max():.2f}"
    assert right in asked.answer.why
    uncentred = token / token.square().mean().sqrt()
    assert f"{uncentred.max():.2f}" in why["The mean was not subtracted from the token."]


@pytest.mark.slow
def test_looking_right_helps_articles_more_than_stops_nouns_and_last_words():
    world = tx.World()
    articles = {"le", "la", "les", "l'", "un", "une", "des"}
    gains = {"article": [], "stop": [], "noun": [], "last": []}
    for review in world.reviews(12, seed=5):
        words = review.words
        for t, word in enumerate(words[1:], 1):
            kinds = {
                "article": word in articles,
                "stop": word == ".",
                "noun": words[t - 1] in articles,
                "last": t == len(words) - 2,
            }
            kind = next((kind for kind, holds in kinds.items() if holds), None)
            if kind is not None:
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
