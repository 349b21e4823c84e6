"""Small formulas of the pages, by hand: an expression in JavaScript and its value."""

import pytest

GLUED = [["J'ai lu l'", "affaire"], ["J’ai lu l’", "affaire"], ["Ce roman", ","], ["Bonjour ", "les"]]
BLANK = "{ rows: [['a', 1, 0.5, 0.25], ['b', 0, 0.25, 0.5]], impossible: 0.75 }"
SHOWN = {"source": ["a", "b", "end"], "target": ["x", "y"], "links": [[0, 1], [1, 1]]}
SHOWN["weights"] = [1, 0, 0, 0.5, 0.2, 0.3]  # x translates nothing
ROWS = [["a", 1, 0.5, 0.25], ["b", 0, 0.25, 0.5], ["other impossible words", 0, 0, 0.25]]
BY_HAND = {
    "alignment": {
        f"js.massOf({SHOWN})": {"mass": pytest.approx(0.7), "even": pytest.approx(2 / 3), "n": 1, "of": 2},
    },
    "count": {
        "[[300, 40], [300, 20]].map((box) => js.fitsIn(['norm, two', '12%'], ...box, 10))": [True, False],
        "[60, 40].map((wide) => js.fitsIn(['norm, two', '12%'], wide, 100, 10))": [True, True],
        "[63, 64].map((wide) => js.fitsIn(['embeddings,'], wide, 99, 10))": [False, True],
    },
    "depth": {
        "js.sized(0)": "1",
        "js.sized(Math.log10(0.0361))": "0.036",
        "js.sized(Math.log10(280))": "280",
        "js.sized(-16)": "1.0·10⁻¹⁶",
        "js.sized(5.5)": "3.2·10⁵",
        "js.sized(-300)": "under 10⁻³⁰⁰",
        "js.decades([[-0.4, 0.3]])": [[-1, 1], [-1, 0, 1]],
        "js.decades([[0, 156]], [-300, 300])": [[-1, 156], [0, 50, 100, 150]],
        "js.decades([[-40, 0], [0, 2.5]])": [[-12, 3], [-10, -5, 0]],
        "js.inside([0, -1], [-2, 1])": {"points": [[0, 0], [1, -1]]},
        "js.inside([0, -4, -9], [-2, 1])": {"points": [[0, 0], [0.5, -2]], "last": -2},
        "js.inside([3, 0], [-2, 1])": {"points": [[0.6666666666666667, 1], [1, 0]], "first": 1},
        "js.spread([10, 60], 0, 100)": [10, 60],
        "js.spread([52, 50, 51], 0, 100)": [82, 50, 66],
        "js.spread([99, 99], 0, 100)": [84, 100],
    },
    "fill_blank": {
        "[[0.04, 0.01], [0.04, 0.11], [1, 0]].map(([a, b]) => js.endOf([['a', a, b, 0]]))": [0.05, 0.2, 1],
        f"js.entriesOf({BLANK})": ROWS,
    },
    "how_sure": {
        "[[0.5, 0.502], [0.5, 0.6], [0.6, 0.5], [1, 1]].map(([a, b]) => js.movedBy(a, b))": [0, 1, -1, 0],
        "[800, -800, Infinity, -Infinity].map((odds) => js.probability(js.chanceOf(odds)))": [
            "above 0.999", "below 0.001", "1.000", "0.000",
        ],
    },
    "mask": {
        "js.percent(0.125)": "13%",
        "js.number(-1.5)": "−1.50",
        "js.number(-0.001)": "0.00",
        "js.grouped(1007900)": "1,007,900",
        """js.curled('"It\\'s" (\\'a\\')')""": "“It’s” (‘a’)",
        """js.curled('"', false)""": "”",
        "js.grouped('35332.9')": "35,332.9",
        "[[], [3], [0, 1], [0, 2, 3, 4, 6, 7]].map(js.listed)": ["", "3", "0, 1", "0, 2–4, 6, 7"],
        "js.evaluate('3·(D·D + D)', { D: 8 })": "216",
        "js.evaluate('2·T + 0', { T: 2 ** 40 })": str(2**41),
    },
    "playground": {
        "[-0.1, 0.3, 0.51, 0.7, null].map((above) => js.outcomeOf(0.5, above))": [0, 1, 2, 3, 3],
        "js.outcomeOf(-0.2, -0.3)": 0,
        "[[0, 7], [60, 7], [60, 99]].map(([seconds, spent]) => js.progress({ step: 3, spent }, "
        "{ n_steps: 9, seconds }))": ["step 3 of 9", "step 3, 7 of 60 s", "step 3, 60 of 60 s"],
    },
    "roofline": {
        "[2.5e9, 999, 0.25].map(js.scaled)": ["2.5 G", "999 ", "0.25 "],
        "[1.1, 0.48, 0.004, 0.0009].map(js.partOf)": ["110%", "48%", "0.4%", "< 0.1%"],
        "[1, 5, 97, 4096].map((n) => js.rowsFor(js.intensityOf(n, 128), 128))": [1, 5, 97, 4096],
        "[1e-9, 16, 1e9].map((intensity) => js.rowsFor(intensity, 64))": [1, 65536, 65536],
    },
    "sampling": {
        f"{GLUED}.map((one) => js.begun(...one))": [text for text, _ in GLUED],
        "[['', 'Le'], ['Bonjour', 'les']].map((one) => js.begun(...one))": ["", "Bonjour "],
        "js.cutsUpTo(1)": [1],
        "js.cutsUpTo(20)": list(range(1, 21)),
        "((cuts) => [cuts.slice(0, 20), cuts.at(-1)])(js.cutsUpTo(1000))": [list(range(1, 21)), 1000],
        "js.cutsUpTo(1000).every((cut, i, cuts) => !i || cut > cuts[i - 1])": True,
    },
    "tokenizer": {  # an id keeps its colour while it is shown, and no two share one
        "((give) => [[5, 9, 5, 7], [9, 7, 80], [9, 80, 5, 6]].map((ids) => [...give(ids)]))(js.palette())": [
            [[5, 0], [9, 1], [7, 2]], [[9, 1], [7, 2], [80, 0]], [[9, 1], [80, 0], [5, 2], [6, 3]],
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", BY_HAND)
def test_formulas_by_hand(node, kind):
    (found,) = node(kind, f"[{', '.join(BY_HAND[kind])}]")
    assert dict(zip(BY_HAND[kind], found, strict=True)) == BY_HAND[kind]
