"""The exercise on beam search."""

from __future__ import annotations

from collections.abc import Iterator

from tinytx_course.exercises.comparing import ids
from tinytx_course.exercises.exercise import Exercise, family
from tinytx_course.exercises.observation import Call
from tinytx_course.exercises.steps import BOS, COMMON_SLIPS, EOS, Step, describe_paths

Slips = frozenset[str]
Beam = tuple[list[int], float]


def _continuations(step: Step, beams: list[Beam], size: int, slips: Slips) -> list[Beam]:
    """All continuations, the best first."""
    found: list[Beam] = []
    for path, total in beams:
        log_probs = step(path[-1:] if "last-id-only" in slips else path)
        gain = log_probs.double().exp() if "probabilities-summed" in slips else log_probs.double()
        each = [
            ([*path, token], (0.0 if "only-last-step" in slips else total) + g)
            for token, g in enumerate(gain.tolist())
        ]
        if "one-continuation-each" in slips and len(beams) > 1:
            each = [max(each, key=lambda beam: beam[1])]
        found += each
    return sorted(found, key=lambda beam: beam[1], reverse="worst-kept" not in slips)


def _final_score(beam: Beam, penalty: float, slips: Slips) -> float:
    path, total = beam
    length = max(len(path) - 1, 1)
    if "penalty-counts-bos" in slips:
        length += 1
    if "penalty-leaves-out-eos" in slips and path[-1] == EOS:
        length = max(length - 1, 1)
    if "penalty-ignored" in slips:
        return total
    if "always-mean" in slips:
        return total / max(length, 1)
    if "penalty-multiplied" in slips:
        return total * length**penalty
    if "penalty-as-factor" in slips:
        return total / (length * penalty) if penalty else total
    if "penalty-subtracted" in slips:
        return total - penalty * length
    if "google-penalty" in slips:
        return total / ((5 + length) / 6) ** penalty
    return total / length**penalty


def _beam(
    step: Step,
    bos_id: int,
    eos_id: int,
    beam_size: int,
    max_len: int,
    length_penalty: float,
    *,
    slips: Slips = frozenset(),
) -> list[int]:
    """Beam search with slips."""
    beams: list[Beam] = [([bos_id], 0.0)]
    finished: list[Beam] = []
    longest = max_len + ("max-len-new-tokens" in slips) - ("one-token-short" in slips)
    if "one-beam" in slips:
        beam_size = 1
    size = beam_size
    while beams and len(beams[0][0]) < longest:
        beams, ended = _kept(step, beams, size, eos_id, finished, length_penalty, slips)
        finished += ended
        if "beams-shrink" in slips:
            size = beam_size - len(finished)
            if size <= 0:
                break
        if "first-finished-wins" in slips and ended:
            beams = []
        if "stops-when-enough-finished" in slips and len(finished) >= beam_size:
            break
    return _answer(beams, finished, length_penalty, slips)


def _kept(
    step: Step, beams: list[Beam], size: int, eos_id: int, finished: list[Beam], penalty: float, slips: Slips
) -> tuple[list[Beam], list[Beam]]:
    """The beams that go on, and those that have just ended."""
    found = _continuations(step, beams, size, slips)
    if "goes-on-after-eos" in slips:
        return found[:size], []
    if slips & {"finished-take-a-place", "finished-take-a-place-by-score"}:
        rank = (
            (lambda beam: beam[1])
            if "finished-take-a-place" in slips
            else (lambda beam: _final_score(beam, penalty, slips))
        )
        pool = sorted([*found, *finished], key=rank, reverse=True)[:size]
        finished.clear()
        return [b for b in pool if b[0][-1] != eos_id], [b for b in pool if b[0][-1] == eos_id]
    if "places-refilled" in slips:
        going = [beam for beam in found if beam[0][-1] != eos_id][:size]
        last = found.index(going[-1]) if going else len(found)
        return going, [beam for beam in found[:last] if beam[0][-1] == eos_id]
    if "places-refilled-from-double" in slips:
        pool = found[: 2 * size]
        going = [beam for beam in pool if beam[0][-1] != eos_id][:size]
        return going, [beam for beam in pool if beam[0][-1] == eos_id]
    if "every-ending-finished" in slips:
        going = [beam for beam in found if beam[0][-1] != eos_id][:size]
        return going, [beam for beam in found if beam[0][-1] == eos_id]
    pool = found[:size]
    return [b for b in pool if b[0][-1] != eos_id], [b for b in pool if b[0][-1] == eos_id]


def _answer(beams: list[Beam], finished: list[Beam], penalty: float, slips: Slips) -> list[int]:
    pool = [*finished, *beams]
    if "finished-forgotten" in slips and beams:
        pool = beams
    if "unfinished-forgotten" in slips and finished:
        pool = finished
    if "first-of-unfinished" in slips:
        pool = beams[:1] or finished[:1]
    best = max(pool, key=lambda beam: _final_score(beam, penalty, slips))[0]
    if "bos-dropped" in slips:
        best = best[1:]
    return best[:-1] if "eos-dropped" in slips and best[-1] == EOS else best


_REFILLED = (
    "When a beam ends, another continuation takes its place in that step: nothing does. The "
    "beam_size best of all "
    "continuations are kept, those that end leave, and the next step again keeps beam_size."
)
_PENALTY = "Short or long: the length penalty"
_BEAM_SLIPS = {
    "penalty-ignored": (
        "`length_penalty` has no effect: divide the sum by length ** length_penalty at the end.",
        _PENALTY,
    ),
    "always-mean": (
        "The sum is divided by the length itself: divide by length ** length_penalty.",
        _PENALTY,
    ),
    "penalty-counts-bos": ("The length counts `bos_id`: only generated ids count.", _PENALTY),
    "penalty-leaves-out-eos": ("The length leaves out `eos_id`: it is generated, so it counts.", _PENALTY),
    "penalty-multiplied": ("The sum is multiplied by length ** length_penalty: divide.", _PENALTY),
    "penalty-as-factor": (
        "The sum is divided by length · length_penalty: it is length ** length_penalty.",
        _PENALTY,
    ),
    "penalty-subtracted": ("The penalty is subtracted: divide by length ** length_penalty.", _PENALTY),
    "google-penalty": (
        "The length enters as ((5 + length) / 6): here it is length ** length_penalty, nothing more.",
        _PENALTY,
    ),
    "places-refilled": (_REFILLED, ""),
    "places-refilled-from-double": (_REFILLED, ""),
    "every-ending-finished": (
        "Every continuation by `eos_id` is counted as finished: only those among the beam_size best are.",
        "",
    ),
    "finished-take-a-place": (
        "Finished beams stay and take a place among the beam_size: they leave, and the next step "
        "keeps beam_size of "
        "the others.",
        "",
    ),
    "finished-take-a-place-by-score": (
        "Finished beams stay and compete by their score with the others, length penalty included, "
        "for the beam_size "
        "places: they leave, and the others are kept by their sum.",
        "",
    ),
    "beams-shrink": (
        "Each finished beam makes the search narrower for good: the next step again keeps "
        "beam_size continuations.",
        "",
    ),
    "finished-forgotten": (
        "Finished beams are forgotten when unfinished ones are left: compare all of them.",
        "",
    ),
    "unfinished-forgotten": (
        "Unfinished beams are forgotten when some have finished: compare all of them.",
        "",
    ),
    "first-finished-wins": ("The search ends with the first finished beam: go on until none is left.", ""),
    "stops-when-enough-finished": (
        "The search ends when beam_size beams have finished: go on until none is left or max_len is reached.",
        "",
    ),
    "first-of-unfinished": (
        "The answer is the first beam: it is the best of finished and unfinished ones by score.",
        "",
    ),
    "goes-on-after-eos": ("Beams go on after `eos_id`: one that ends in it is finished.", ""),
    "one-beam": ("Only one beam is followed, which is the greedy way.", ""),
    "one-continuation-each": (
        "Each beam keeps only its best continuation: the beam_size best of all continuations are "
        "kept, of whichever beam.",
        "",
    ),
    "only-last-step": (
        "Continuations are compared by their last log-probability: compare sums over the whole path.",
        "",
    ),
    "probabilities-summed": ("Probabilities are added up: add log-probabilities.", ""),
    "worst-kept": ("The worst continuations are kept: keep the best.", ""),
    **COMMON_SLIPS,
    "one-token-short": ("It stops one token early: the answer may have `max_len` ids.", ""),
}
_BEAM_APART = (
    [slug for slug in _BEAM_SLIPS if "penalty" in slug or slug == "always-mean"],
    [
        "places-refilled",
        "places-refilled-from-double",
        "every-ending-finished",
        "finished-take-a-place",
        "finished-take-a-place-by-score",
        "goes-on-after-eos",
        "beams-shrink",
    ],
    ["finished-forgotten", "unfinished-forgotten", "first-of-unfinished", "goes-on-after-eos"],
    ["first-finished-wins", "stops-when-enough-finished"],
    ["one-token-short", "max-len-new-tokens"],
    [
        "one-beam",
        "one-continuation-each",
        "only-last-step",
        "probabilities-summed",
        "worst-kept",
        "last-id-only",
    ],
)


# (seed of the step, bias of eos, beam_size, max_len, length_penalty): found by a search over many; together
# they tell each slip from the right answer and from every other slip, whatever the seed of the check.
_TELLING = (
    (1619, 1.5, 3, 3, 2.0),
    (5129, 1.0, 2, 4, 1.0),
    (3955, 0.0, 3, 4, 0.5),
    (5318, 0.5, 2, 4, 2.0),
    (5036, 1.5, 3, 4, 1.3),
    (2520, 1.5, 2, 4, 0.7),
    (3338, 1.0, 1, 5, 0.0),
    (8253, 0.5, 2, 5, 2.0),
    (7938, 0.5, 2, 6, 0.0),
)
_OF_EVERY_SIZE = ((0.5, 2, 2, 1.0), (1.5, 2, 3, 0.0), (1.0, 2, 3, 1.0), (0.5, 3, 5, 0.6))


def _beam_calls(seed: int) -> Iterator[Call]:
    drawn = [(7919 * seed + n, *sizes) for n, sizes in enumerate(_OF_EVERY_SIZE)]
    for step_seed, eos_bias, *rest in sorted([*drawn, *_TELLING], key=lambda row: row[3]):
        yield Call((Step(step_seed, eos_bias=eos_bias), BOS, EOS, *rest))


BEAM_SEARCH = Exercise(
    name="beam_search",
    signature="beam_search(step, bos_id, eos_id, beam_size, max_len, length_penalty)",
    lesson=11,
    section="Searching: the best piece is not the best sentence",
    rule=(
        "a list of ids. From every unfinished beam, all continuations; keep the beam_size best by summed "
        "log-probability; those that end in eos_id are finished and leave, nothing takes their "
        "places in that step. Go on "
        "until none is left or max_len ids are reached. The best of finished and unfinished by "
        "sum / (number of "
        "generated ids) ** length_penalty."
    ),
    read=ids,
    solve=_beam,
    calls=_beam_calls,
    mistakes=family(
        _beam, _BEAM_SLIPS, _BEAM_APART, ("penalty-ignored", "penalty-counts-bos", "bos-dropped")
    ),
    explain=describe_paths,
)
EXERCISES = (BEAM_SEARCH,)
