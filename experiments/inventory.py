"""The concept inventory: every item in two forms, and what each wrong solution answers to it.

The options are not invented. Each is what an implementation of the asked function returns: the key that of
the right one, the others those of three known mistakes. Then every implementation with which a checker names
a mistake, and every wrong solution that is handed over, is run on each item of its function. The table says
which misconceptions the inventory tells apart; nothing in it is about people. The solutions are in the tests:
``python -m tests.solutions.inventory`` hands them over and writes what is stored.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

import tinytx_course.exercises
from experiments import inventory_machine, inventory_training  # noqa: F401  (enter their items)
from experiments.harness import Record, Records, Settings, digest_of
from experiments.inventory_items import FORMS, ITEMS, LETTERS, Form, Function, Item, make_forms
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.museum.faults import FAULTS, PROGRAM
from tinytx_course.museum.patients import RECIPES

MUSEUM = "museum:"
CATALOGUE = Path(tinytx_course.exercises.__path__[0])  # a file for each exercise
HEALTHY = "nothing is wrong with the program"
Solution = tuple[str, str, str, Function]  # exercise, slug of its mistake, name, program
Misconception = tuple[str, str]  # function and slug
Pair = tuple[Misconception, Misconception, list[int]]  # and the numbers of the items that separate them


def inventory(settings: Settings, solutions: Sequence[Solution] = ()) -> pd.DataFrame:
    """Make all items, and put them to every wrong solution; see `table`.

    Without solutions it raises ValueError: of some mistakes, checkers have no implementation.
    """
    settings.check_budget("smoke", "laptop")
    if not solutions:
        again = "run `python -m tests.solutions.inventory`, which has them"
        raise ValueError(f"the inventory must be put to wrong solutions, got none: {again}")
    keys = {form: _letters(form) for form in FORMS}
    records = {}
    for number, item in enumerate(tqdm(ITEMS.values(), desc="items", disable=None)):
        key = f"{settings.budget}/{item.key}"
        letters = {form: keys[form][number] for form in FORMS}
        origin = {"sources": sources_digest(item, solutions), "number": number + 1, "letters": letters}
        measure = partial(measured, item, number + 1, letters, solutions, settings.budget == "smoke")
        records[key] = settings.cached(key, origin, measure)
    found = separation(records)
    settings.store.put(f"{settings.budget}-separation", found)
    return table({**records, f"{settings.budget}-separation": found})


def sources_digest(item: Item, solutions: Sequence[Solution]) -> str:
    """A short name for what an item follows from: its functions, solutions and mistakes, or the museum."""
    if item.function.startswith(MUSEUM):
        parts = (item.ask, inventory_training.museum_question, inventory_training.trained)
        sources = [inspect.getsource(part) for part in parts] + [PROGRAM]
        return digest_of({"sources": sources, "recipe": RECIPES["language model"]})
    paths = [CATALOGUE / f"{item.function}.toml", *sorted(Path(__file__).parent.glob("inventory*.py"))]
    modules = {program.__module__ for exercise, *_, program in solutions if exercise == item.function}
    texts = {name: inspect.getsource(sys.modules[name]) for name in modules}
    return digest_of({**texts, **{path.name: path.read_text(encoding="utf-8") for path in paths}})


def _letters(form: str) -> list[str]:
    """The letter of the key for each item of a form: every letter equally often, in a fixed random order."""
    letters = [LETTERS[number % len(LETTERS)] for number in range(len(ITEMS))]
    random.Random(f"letters of form {form}").shuffle(letters)
    return letters


# ---- who answers


def answerers(
    item: Item, solutions: Iterable[Solution], smoke: bool = False
) -> tuple[Function, dict[str, list[tuple[str, Function]]]]:
    """The right implementation, and by slug the names and functions of all wrong ones."""
    wrong: dict[str, list[tuple[str, Function]]] = defaultdict(list)
    if item.function.startswith(MUSEUM):
        for slug in item.slugs:
            wrong[slug].append((slug, _program(slug, smoke)))
        return _program(item.function, smoke), wrong
    exercise = EXERCISES[item.function]
    for mistake in exercise.mistakes:
        double = "+" in mistake.slug and mistake.slug not in item.slugs  # of these there are hundreds
        for number, function in enumerate(() if double else mistake.wrongs):
            wrong[mistake.slug].append((f"{mistake.slug} {number + 1}", function))
    for name, slug, who, program in solutions:
        if name == exercise.name:
            wrong[slug].append((who, program))
    right = inventory_training.real_masking if exercise.name == "mask_tokens" else exercise.solve
    return right, wrong


def _program(name: str, smoke: bool) -> Function:
    fault = name.removeprefix(MUSEUM)
    return partial(inventory_training.trained, fault=None if fault == "healthy" else fault, smoke=smoke)


def measured(
    item: Item, number: int, letters: Mapping[str, str], solutions: Iterable[Solution], smoke: bool
) -> Record:
    """One item in both forms, with what every wrong implementation answers."""
    right, wrong = answerers(item, solutions, smoke)
    first = {slug: wrong[slug][0][1] for slug in item.slugs}
    quick = not item.function.startswith(MUSEUM)  # a curve takes seconds to train
    forms = make_forms(item, right, first, typical=number % len(LETTERS) == 0 if quick else None)
    orders = {name: _order(item, name, letters[name]) for name in forms}
    everyone = [(slug, *one) for slug, several in sorted(wrong.items()) for one in several]
    answers = []
    for slug, who, function in everyone:
        chosen = {name: form.chosen_by(function) for name, form in forms.items()}
        if any(number is not None for number in chosen.values()):
            answers.append([slug, who, *(_letter(chosen[name], orders[name]) for name in forms)])
    return {
        "number": number,
        "concept": item.concept,
        "function": item.function,
        "words": {slug: words_of(item, slug) for slug in item.slugs},
        "forms": {name: _stored(item, form, orders[name]) for name, form in forms.items()},
        "answers": answers,
    }


def _order(item: Item, form: str, letter: str) -> list[int]:
    """Which option is at which letter; 0 is the key."""
    others = list(range(1, len(LETTERS)))
    random.Random(f"order of {item.key} {form}").shuffle(others)
    others.insert(LETTERS.index(letter), 0)
    return others


def _letter(chosen: str | None, order: Sequence[int]) -> str | None:
    return LETTERS[order.index(int(chosen))] if chosen is not None and chosen.isdecimal() else chosen


def _stored(item: Item, form: Form, order: Sequence[int]) -> Record:
    slugs = (None, *item.slugs)
    return {
        "prompt": form.question.prompt,
        "given": [shown.plain() for shown in form.question.given],
        "options": [{**form.options[n].plain(), "reveals": slugs[n]} for n in order],
        "key": LETTERS[order.index(0)],
    }


def words_of(item: Item, slug: str) -> str:
    """What a misconception is, in the words of its checker or of the museum."""
    if slug.startswith(MUSEUM):
        name = slug.removeprefix(MUSEUM)
        return f"The curve of a program where {FAULTS[name].meaning if name in FAULTS else HEALTHY}."
    return {mistake.slug: mistake.words for mistake in EXERCISES[item.function].mistakes}[slug]


# ---- what is separated


def choices(records: Iterable[Record], form: str) -> dict[Misconception, dict[int, set[str]]]:
    """By misconception and number of the item: the letters that its implementations choose in a form."""
    place = 2 + FORMS.index(form)
    found: dict[Misconception, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for record in records:
        for answer in record["answers"]:
            if answer[place] is not None:
                found[record["function"], answer[0]][record["number"]].add(answer[place])
    return found


def separated_pairs(records: Sequence[Record], form: str) -> Iterator[Pair]:
    """Every pair of misconceptions that some item offers, with the numbers of the items that separate it.

    A pair is separated by an item if its two answers are known, and are different letters. Where an item does
    not call the function of a misconception, its answer is the key: whoever has one misconception only is
    right there. An answer that is not offered is unknown, and separates nothing.
    """
    keys = {record["number"]: record["forms"][form]["key"] for record in records}
    asked = defaultdict(set)
    for record in records:
        asked[record["function"]].add(record["number"])
    answers = {
        one: {n: by_item.get(n, {"other"}) if n in asked[one[0]] else {keys[n]} for n in keys}
        for one, by_item in choices(records, form).items()
        if any("other" not in letters and keys[n] not in letters for n, letters in by_item.items())
    }
    for one, other in combinations(sorted(answers), 2):
        both = {n: (answers[one][n], answers[other][n]) for n in keys}
        yield one, other, [n for n, (a, b) in both.items() if not a & b and "other" not in a | b]


def separation(records: Records) -> Record:
    """Shares of pairs that are separated, in each form: of all pairs, and of those within one function."""
    items = [record for record in records.values() if "forms" in record]
    found: Record = {"pairs_separated": 1.0, "in_form": {}}
    for form in FORMS:
        pairs = list(separated_pairs(items, form))
        within = [pair for pair in pairs if pair[0][0] == pair[1][0]]
        shares = {
            name: round(sum(bool(numbers) for *_, numbers in some) / max(1, len(some)), 4)
            for name, some in (("all", pairs), ("within one function", within))
        }
        found["in_form"][form] = {
            "misconceptions": len({one for pair in pairs for one in pair[:2]}),
            "pairs": len(pairs),
            "pairs within one function": len(within),
            "separated": shares,
            "not separated": [
                ["/".join(one), "/".join(other)] for one, other, numbers in pairs if not numbers
            ],
        }
        found["pairs_separated"] = min(found["pairs_separated"], shares["all"])
    return found


def table(records: Records) -> pd.DataFrame:
    """One row an item: keys of both forms, wrong solutions that answer form A, pairs separated.

    The last row has the number of all pairs and the share of them that is separated.
    """
    budget = "laptop" if "laptop-separation" in records else "smoke"
    items = [record for key, record in records.items() if key.startswith(f"{budget}/")]
    numbers = [pair[2] for pair in separated_pairs(items, "A")]
    rows = []
    for record in items:
        keys = [record["forms"][form]["key"] for form in FORMS]
        answered = [answer[2] for answer in record["answers"] if answer[2] not in (None, "other")]
        rows.append(
            {
                **{"item": f"{record['number']} {record['concept']}", "function": record["function"]},
                **{"keys": "".join(keys), "answered": len(answered)},
                "wrongly": sum(letter != keys[0] for letter in answered),
                "pairs": sum(record["number"] in one for one in numbers),
            }
        )
    share = separation(records)["pairs_separated"]
    last = {"item": "all", "function": f"{len(numbers)} pairs", "pairs_separated": share}
    return pd.DataFrame([*rows, last], dtype=object).fillna("")
