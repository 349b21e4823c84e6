"""The public names of the course, each once: read by type checkers, and by `__init__.py`."""

from tinytx_course import plots as plots
from tinytx_course import widgets as widgets
from tinytx_course.exercises.checking import check as check
from tinytx_course.exercises.practice import practise as practise
from tinytx_course.exercises.using import use as use
from tinytx_course.exercises.verdict import Verdict as Verdict
from tinytx_course.museum.diagnosing import diagnose as diagnose
from tinytx_course.progress.predictions import predict as predict
from tinytx_course.progress.predictions import resolve as resolve
from tinytx_course.progress.status import reset as reset
from tinytx_course.progress.status import status as status
from tinytx_course.quizzes.quiz import quiz as quiz
from tinytx_course.quizzes.quiz import recall as recall
from tinytx_course.terms import glossary as glossary
from tinytx_course.widgets.parsons import parsons as parsons

PACKAGES: tuple[str, ...]
