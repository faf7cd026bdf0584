"""Certificates and solutions, altered: a share of tests/fuzz_altered.py; that it finds what is planted."""

from collections import Counter

import fuzz_altered
import pytest
from fuzz_altered import faults
from fuzz_optima import MAKERS

from app.tasks import check

pytestmark = pytest.mark.mpi_skip


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fuzz_altered, "LIMIT_S", 0)  # the session's own limit stands


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_untrue_is_proved_or_taken(name):
    counts = Counter()
    assert list(faults(7, name, 12, counts)) == []
    assert counts.total()


def test_a_bound_that_is_too_good_is_found(monkeypatch):
    honest = check.proved_by
    monkeypatch.setattr(check, "proved_by", lambda *given: honest(*given) + 1)
    found = [each for number in (1, 2, 3) for each in faults(number, "mvc", 4, Counter())]
    assert "is known" in found[0]["fault"]


def test_a_solution_that_is_taken_though_it_is_none_is_found(monkeypatch):
    monkeypatch.setattr(check, "_fault", lambda *_: None)
    found = [each for number in (1, 2, 3) for each in faults(number, "mvc", 16, Counter())]
    assert any("though infeasible" in each["fault"] for each in found if each["of"] == "solution")
