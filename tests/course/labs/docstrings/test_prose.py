"""What is prose in a docstring, in the styles in which people write them."""

import pytest

from tinytx_course.labs.docstrings import is_prose, paragraphs

NUMPY_STYLE = """Return the mean of the values.

Empty bins count as zero,
and so do bins of nothing.

Parameters
----------
values : array
    The values that the mean is taken of.

    These may be of any type at all.

Notes
-----
The sum is kept in double precision.

.. note::

    It is not the median of them.

.. math::

    m = \\sum_i x_i / n is what the function returns

See Also
--------
median : The value in the middle of all of them.
"""
GOOGLE_STYLE = """Send the words over the wire.

Args:
    words: the words that are to be sent to the other side.

        They may be many of them or a few.
    wire (Wire): what they are sent over.

Returns:
    True if they all arrive on the other side.

Note:
    The wire is left open at the end.

Raises: WireError if the wire is cut.

The other side has to listen.
"""
SPHINX_STYLE = """Walk over all of the nodes.

:param graph: the graph of which the nodes are a part,
    and the edges too, if there are any.
:returns: a list of the nodes in the order of the walk.

.. deprecated:: 1.2
   Use the other walk, which is faster than this one.

A :class:`Walk` is not what is returned.
"""


@pytest.mark.parametrize(
    ("docstring", "prose"),
    [
        (
            NUMPY_STYLE,
            [
                "Return the mean of the values.",
                "Empty bins count as zero, and so do bins of nothing.",
                "The sum is kept in double precision.",
                "It is not the median of them.",
            ],
        ),
        (
            GOOGLE_STYLE,
            [
                "Send the words over the wire.",
                "The wire is left open at the end.",
                "The other side has to listen.",
            ],
        ),
        (SPHINX_STYLE, ["Walk over all of the nodes.", "A Walk is not what is returned."]),
    ],
)
def test_parameters_results_and_formulas_are_left_out_in_every_style(docstring, prose):
    assert paragraphs(docstring) == prose


def test_code_and_what_it_prints_are_left_out():
    docstring = (
        "It can be used so::\n\n    the = code.of(an, example)\n\nAnd like this\n>>> the + code\n"
        "and what it prints of it\n\nAnd that is all of it."
    )
    assert paragraphs(docstring) == ["It can be used so:", "And that is all of it."]


def test_bullets_are_paragraphs_of_their_own_and_tables_are_none():
    docstring = (
        "There are two of them:\n\n- the first of them is\n  the one that counts\n- the second is as good\n\n"
        "=====  =====\nthe a  and b\n=====  =====\nis of   the x\n=====  =====\n\n"
        "| the a | of b |\n| in c  | is d |"
    )
    assert paragraphs(docstring) == [
        "There are two of them:",
        "the first of them is the one that counts",
        "the second is as good",
    ]


@pytest.mark.parametrize(
    ("markup", "plain"),
    [
        ("Use :func:`~numpy.linalg.norm` for that.", "Use norm for that."),
        ("Use :ref:`the guide <guide>` for that.", "Use the guide for that."),
        ("Use `the guide <there>`_ for that.", "Use the guide for that."),
        ("Use ``axis`` and `out` for that.", "Use axis and out for that."),
        ("It is *very* fast, and **not** slow.", "It is very fast, and not slow."),
        ("It is as shown in [1]_ and [2]_.", "It is as shown in and."),
        ("Return the :math:`n` largest of them.", "Return the n largest of them."),
        ("See https://example.org/x_y for more of it.", "See for more of it."),
        ("It is the user\u2019s\u00a0own.", "It is the user's own."),
        ("The method __init__ is called first of all.", "The method __init__ is called first of all."),
        ("Two * three is less than two ** four.", "Two * three is less than two ** four."),
    ],
)
def test_markup_goes_and_the_words_stay(markup, plain):
    assert paragraphs(markup) == [plain]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Too few words.",
        "f(x, y=1), g(x, y=2), h(x)",
        "pressure temperature density viscosity",
        "x in the set {1, 2} of a",
        "values : the array of the values",
        ">>> it is the best of them",
        "ab12 cd34 of ef56 gh78",
    ],
)
def test_what_is_no_english_sentence_is_no_prose(text):
    assert not is_prose(text)
    assert paragraphs(text) == []


def test_formulas_within_a_paragraph_leave_it_out():
    assert paragraphs(r"It is the sum :math:`\sum_i x_i` of the values.") == []
