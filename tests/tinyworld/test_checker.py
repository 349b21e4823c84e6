"""The checkers pass what the world writes, name planted mistakes, and survive any words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tinyworld.english_checker import check_english
from tinyworld.checker import check_sentence
from tinyworld.world import World

# sentence, what must be named
FRENCH = {
    "Le amour est beau .": "'le' must be elided before 'amour'",
    "La histoire est belle .": "'la' must be elided before 'histoire'",
    "L' héros est bon .": "\"l'\" must not be elided before 'héros'",
    "Je aime la fin .": "'je' must be elided before 'aime'",
    "J' hais la fin .": "\"j'\" must not be elided before 'hais'",
    "Ce est un roman .": "'ce' must be elided before 'est'",
    "Le style me ennuie .": "'me' must be elided before 'ennuie'",
    "Le roman que ai lu est bon .": "'que' must be elided before 'ai'",
    "Le style ne est pas bon .": "'ne' must be elided before 'est'",
    "Le style de le roman est bon .": "de le must be contracted to 'du'",
    "Le style de les romans est bon .": "de les must be contracted to 'des'",
    "Grâce à le style , ce roman est bon .": "à le must be contracted to 'au'",
    "Le style du œuvre est bon .": "'du' must agree with 'œuvre' (f sg)",
    "Le style du ouvrage est bon .": "'du' must be \"de l'\" before 'ouvrage'",
    "Grâce au aveu , ce roman est bon .": "'au' must be \"à l'\" before 'aveu'",
    "La roman est bon .": "'la' must agree with 'roman' (m sg)",
    "J' ai lu ces roman .": "'ces' must agree with 'roman' (m sg)",
    "J' ai lu ce romans .": "'ce' must agree with 'romans' (m pl)",
    "J' ai lu un histoire .": "'un' must agree with 'histoire' (f sg)",
    "J' ai lu ce ouvrage .": "'ce' must be 'cet' before 'ouvrage'",
    "J' ai lu cet roman .": "'cet' must be 'ce' before 'roman'",
    "J' ai lu cette roman .": "'cette' must agree with 'roman' (m sg)",
    "Quelle roman magnifique !": "'quelle' must agree with 'roman' (m sg)",
    "C' est un beau ouvrage .": "'beau' must be 'bel' before 'ouvrage'",
    "C' est un bel roman .": "'bel' must not stand before 'roman'",
    "J' ai lu des beaux romans .": "'des' must be 'de' before 'beaux'",
    "J' ai lu de romans .": "'de' must be 'des' before 'romans'",
    "Ces livres parlent d' roi .": "'roi' must have an article after \"d'\"",
    "C' est un captivant roman .": "'captivant' must stand after 'roman'",
    "J' ai lu un roman petit .": "'petit' must stand before 'roman'",
    "J' ai lu roman .": "'roman' must have an article",
    "Le roman est captivante .": "'captivante' must agree with 'roman' (m sg)",
    "Les histoires sont belle .": "'belle' must agree with 'histoires' (f pl)",
    "C' est belle .": "'belle' must agree with \"c'\" (m sg)",
    "Le style de l' histoire est belle .": "'belle' must agree with 'style' (m sg)",
    "La fin est plate et lent .": "'lent' must agree with 'fin' (f sg)",
    "J' ai lu cette histoire , et il est belle .": "'il' must agree with 'histoire' (f sg)",
    "J' ai lu cette histoire , et elle est captivant .": "'captivant' must agree with 'elle' (f sg)",
    "Les romans est bons .": "'est' must agree with 'romans' (m pl)",
    "Le roman sont bon .": "'sont' must agree with 'roman' (m sg)",
    "Le roman me touchent .": "'touchent' must agree with 'roman' (m sg)",
    "Ce roman parlent d' un roi , et c' est beau .": "'parlent' must agree with 'roman' (m sg)",
    "La fin , je l' ai adoré .": "'adoré' must agree with 'fin' (f sg)",
    "Les fins , je l' ai adorées .": "unknown word 'fins'",
    "Les scènes , je l' ai adorées .": "\"l'\" must agree with 'scènes' (f pl)",
    "J' ai aimée cette histoire .": "'aimée' must agree with 'ai' (m sg)",
    "L' histoire que j' ai lu est belle .": "'lu' must agree with 'histoire' (f sg)",
    "L' histoire que j' ai lue est beau .": "'beau' must agree with 'histoire' (f sg)",
    "L' histoire est bien écrit .": "'écrit' must agree with 'histoire' (f sg)",
    "Je n' aime la fin .": "'ne' must have its 'pas' or 'ni'",
    "Le roman est pas bon .": "'pas' or 'ni' must have its 'ne'",
    "le roman est bon .": "the first word must have a capital, got 'le'",
    "Le Roman est bon .": "only the first word may have a capital, got 'Roman'",
    "Le roman est bon": "the last word must be one of . !, got 'bon'",
    "Le roman est bon , .": "two marks must not meet, got ',' '.'",
    "Le roman . est bon .": "a sentence must end at its '.', got 'est' after it",
    "": "a sentence must have words, got none",
    "Le chat est bon .": "unknown word 'chat'",
}
ENGLISH = {
    "It is an novel .": "'an' must be 'a' before 'novel'",
    "It is a epic .": "'a' must be 'an' before 'epic'",
    "It is a endless novel .": "'a' must be 'an' before 'endless'",
    "It is a novels .": "'a' must not stand before 'novels' (pl)",
    "Despite a boring writing , this novel is good .": "'a' must not stand before 'writing' (mass)",
    "I liked these novel .": "'these' must agree with 'novel' (sg)",
    "I liked this novels .": "'this' must agree with 'novels' (pl)",
    "I like novel .": "'novel' must have an article",
    "The novel are good .": "'are' must agree with its subject (sg)",
    "The novels is good .": "'is' must agree with its subject (pl)",
    "The style of the novels are good .": "'are' must agree with its subject (sg)",
    "The novels touches me .": "'touches' must agree with its subject (pl)",
    "The novels does not touch me .": "'does' must agree with its subject (pl)",
    "This novel speak of a king , and it is good .": "'speak' must agree with its subject (sg)",
    "The scenes , I liked it .": "'it' must agree with its noun (pl)",
    "I read these novels , and it is good .": "'it' must agree with its noun (pl)",
    "the novel is good .": "the first word must have a capital, got 'the'",
    "The novel is good": "the last word must be one of . !, got 'good'",
    "The cat is good .": "unknown word 'cat'",
}


@pytest.mark.parametrize(("sentence", "named"), FRENCH.items(), ids=str)
def test_planted_mistakes_in_french_are_named(sentence, named):
    assert named in check_sentence(sentence.split())


@pytest.mark.parametrize(("sentence", "named"), ENGLISH.items(), ids=str)
def test_planted_mistakes_in_english_are_named(sentence, named):
    assert named in check_english(sentence.split())


JUDGES = {"fr": check_sentence, "en": check_english}


@pytest.mark.parametrize("language", JUDGES)
def test_drawn_sentences_pass(language, world):
    sentences = {p.french if language == "fr" else p.english for p in world.sentence_pairs(10_000, seed=31)}
    assert len(sentences) > 5_000
    assert not [words for words in sentences if JUDGES[language](words)]


@pytest.mark.parametrize("language", JUDGES)
def test_any_other_form_of_a_word_is_a_mistake(language, world):
    """Replace one word of a correct sentence by another form of it."""
    forms = world.grammar.lexicon.adjectives if language == "fr" else world.grammar.lexicon.nouns
    columns = ("masculine", "feminine") if language == "fr" else ("english", "english_plural")
    swap = {}
    for row in forms:
        one, other = (row[column] for column in columns)
        other = one + "s" if other == "." else other
        if other not in (one, "-", "mass") and one not in swap:
            swap |= {one: other, other: one}
    found = []
    for pair in world.sentence_pairs(1500, seed=32):
        words = list(pair.french if language == "fr" else pair.english)
        for i, word in enumerate(words):
            if word in swap:
                found.append(bool(JUDGES[language]([*words[:i], swap[word], *words[i + 1 :]])))
    # English also has "the novels that I read": not every change is a mistake.
    assert len(found) > 500 and sum(found) >= (1.0 if language == "fr" else 0.7) * len(found)


WORDS = [*World().vocabulary, *World("en").vocabulary, "", "'", "zut", "L'", "\u2047"]


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
def test_any_words_are_judged_without_a_crash(words):
    assert all(isinstance(error, str) for judge in JUDGES.values() for error in judge(words))
