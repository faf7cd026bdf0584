"""app/gnn/products: products and gradients that take the place of their operand have the bits of new rows."""

import numpy as np
import pytest
from helpers import EXCHANGES, growing_graph, make_block
from layer_models import own_rows
from mpi4py.MPI import COMM_WORLD as WORLD

from app.gnn.engine import Engine
from app.gnn.neighbours import Neighbours
from app.gnn.parameters import Parameters
from app.gnn.products import SPREAD_COLUMNS
from app.numerics.elementwise import Dropout
from app.numerics.products import ROWS_THROUGH

GRAPH = growing_graph(300, 3, 5)
WIDTHS = [3, SPREAD_COLUMNS + 1, 2 * SPREAD_COLUMNS]


def run(group, program, exchange="auto", graph=GRAPH):
    """What a program (a function of the engine and of `put`, which makes rows) gives, on the host."""
    block = make_block(group, graph, exchange)
    engine = Engine(Neighbours(group, block), block.rows, Parameters(group.device, {}), 0)

    def put(values):
        host = own_rows(block, values)
        rows = engine.take("X", host.shape[1])

        def work():
            rows.array[...] = group.device.put(host)

        engine.apply("load", "X", [], [rows], work)
        return rows

    def once():
        with engine.program("epoch"):
            rows = program(engine, put)
            found = engine.apply("keep", "", [rows], [], lambda: np.array(group.device.get(rows.array)))
            engine.free(rows)
        return found

    with engine.dry():
        once()
    engine.allocate()
    return once()[: block.n_real], engine


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("own, scaled", [(True, False), (False, False), (True, True)])
def test_a_product_in_place(group, width, own, scaled, exchange):
    X = numbers(width, GRAPH[0], width)

    def factor():
        return group.device.put(np.full((1, 1), 1.25, np.float32)) if scaled else None

    def beside(engine, put):
        rows = put(X)
        out = engine.neighbours(rows, own, factor=factor())
        engine.free(rows)
        return out

    expected, wide = run(group, beside, exchange)
    found, narrow = run(group, lambda engine, put: engine.spread(put(X), own, factor()), exchange)
    assert found.tobytes() == expected.tobytes()
    assert wide.plan.columns == 2 * width
    assert narrow.plan.columns == width + min(width, SPREAD_COLUMNS)
    (product,) = [each for each in narrow.recorded["epoch"] if each.kind == "spmm"]
    assert sum(product.exchanges) == width


@pytest.mark.parametrize("drop", [None, Dropout(99, 0.5, 0)])
@pytest.mark.parametrize("terms", [1, 2])
def test_a_gradient_in_the_place_of_what_it_went_through(group, terms, drop):
    graph = growing_graph(ROWS_THROUGH * WORLD.Get_size() + 300, 1, 5)
    n, width = graph[0], 20
    Ds = [numbers(i, n, 7) for i in range(terms)]
    Ws = [numbers(10 + i, 7, width) for i in range(terms)]
    H = np.maximum(numbers(20, n, width), 0)

    def program(engine, put, relu):
        rows, given = put(H), [put(D) for D in Ds]
        rows.relu, rows.drop = relu, drop
        out = engine.dense_through([(D, engine.device.put(W)) for D, W in zip(given, Ws)], rows)
        assert (out is rows) == relu
        if not relu:
            engine.deactivate(out, rows, None, drop, True)
            engine.free(rows)
        engine.free(*given)
        return out

    expected, wide = run(group, lambda *each: program(*each, False), graph=graph)
    found, narrow = run(group, lambda *each: program(*each, True), graph=graph)
    assert found.tobytes() == expected.tobytes() and found.any()
    assert narrow.plan.columns == wide.plan.columns - width
