"""How many threads linear algebra has: of a program that run.py starts, and during calls from Python."""

import os
import warnings

import networkx as nx
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from app import api, solve, threads
from app.errors import CaseError


def test_a_process_is_limited_by_its_environment(monkeypatch):
    for name in threads.VARIABLES:
        monkeypatch.setenv(name, "8")
    monkeypatch.delenv("LOCKSTEP_THREADS", raising=False)
    threads.limit_threads()
    assert {os.environ[name] for name in threads.VARIABLES} == {"1"}
    monkeypatch.setenv("LOCKSTEP_THREADS", "3")
    threads.limit_threads()
    assert {os.environ[name] for name in threads.VARIABLES} == {"3"}
    monkeypatch.setenv("LOCKSTEP_THREADS", "many")
    with pytest.raises(CaseError, match="LOCKSTEP_THREADS: must be from 1 to 4096"):
        threads.limit_threads()


def of_libraries():
    """Threads of every linear algebra library that is loaded and can be asked."""
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


@pytest.fixture
def two_threads():
    """A process whose libraries have two threads, as a user's may."""
    with threadpool_limits(2, user_api="blas"):
        if not of_libraries():
            pytest.skip("no linear algebra library here can be asked for its threads")
        assert set(of_libraries()) == {2}
        yield


@pytest.mark.parametrize("wanted", ["", "2"])
def test_a_call_is_limited_and_leaves_things_as_they_were(wanted, two_threads, monkeypatch):
    monkeypatch.delenv("LOCKSTEP_THREADS", raising=False)
    if wanted:
        monkeypatch.setenv("LOCKSTEP_THREADS", wanted)
    before, during = of_libraries(), []
    made = api.solve.problem_of
    monkeypatch.setattr(api.solve, "problem_of", lambda case: during.append(of_libraries()) or made(case))
    assert solve(nx.path_graph(5), settings={"search.steps": 10}).objective == 2
    assert set(during[0]) == {int(wanted or 1)}
    with pytest.raises(CaseError):
        solve(nx.path_graph(5), "no problem")
    assert of_libraries() == before


def test_without_threadpoolctl_calls_work(monkeypatch):
    monkeypatch.setattr(threads, "find_spec", lambda name: None)
    assert solve(nx.path_graph(5), settings={"search.steps": 10}).objective == 2


def test_a_warning_names_the_line_of_the_caller():
    matrix = sp.coo_matrix(([1, 2, 2, 1], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        solve(matrix, "maxcut", settings={"search.steps": 10})
    assert [(each.filename, "not symmetric" in str(each.message)) for each in said] == [(__file__, True)]
