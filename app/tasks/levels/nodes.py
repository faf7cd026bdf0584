"""What nodes of a graph are, or graphs of a set (gnn.level "node", "graph"): examples and predictions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from app.case.gnn import GnnCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.gnn.classifier import Classifier
from app.gnn.known import NOTHING
from app.gnn.loss import refuse_infinite_rows
from app.gnn.metrics import SplitScores
from app.gnn.plain import ALIKE, plain_scores
from app.gnn.saved import SavedModel
from app.graphs.ids import between_names, blank_between, escaped, plain_ids, quoted
from app.graphs.nodes.data import NodeData
from app.memory.tiers import TierBudget
from app.partition.generated_nodes import all_in_test
from app.partition.ids import ids_everywhere
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.levels.course import Learned
from app.tasks.levels.dealt import draw_folds, lacking, split_by_fold
from app.tasks.levels.examples import Examples
from app.tasks.levels.explained import Names
from app.tasks.levels.reading import load
from app.tasks.levels.said import count_arcs

BESIDE = ("test_propagated", "test_alike")  # columns of the test scores of plain rules


@dataclass(frozen=True)
class NodeExamples(Examples):
    """Labelled nodes of a graph, or labelled graphs of a set, whose members `loaded` knows.

    neighbours   that a node of a directed graph hears (graph.neighbours)
    names        of nodes, or graphs, in the order of a caller; None: the ids of the files
    """

    neighbours: str = "both"
    names: tuple[Any, ...] | None = None

    @property
    def beside(self) -> tuple[str, ...]:
        """See Examples."""
        return BESIDE

    @property
    def what(self) -> str:
        """See Examples."""
        return "node" if self.loaded.members is None else "graph"

    @property
    def heard(self) -> str:
        """See Examples."""
        return "both" if self.loaded.graph.arcs is None else self.neighbours

    def check(self, gnn: GnnCase, embeddings: bool) -> None:
        """See Examples; a readout of one layer is an embedding, too."""
        super().check(gnn, embeddings and gnn.level == "node")

    def known_to(self, path: str, saved: SavedModel) -> Self:
        """See Examples."""
        return replace(self, data=saved.relabel(path, self.data))

    def all_tested(self, group: Group) -> Self:
        """See Examples."""
        return replace(self, data=all_in_test(group, self.data))

    def classifier(
        self, context: Context, gnn: GnnCase, block: RowBlock, seed: int, saved: SavedModel | None = None,
        budget: TierBudget | None = None,
    ) -> Classifier:  # fmt: skip
        """See Examples."""
        known, budget = saved.known if saved else NOTHING, budget or TierBudget.of(context.case.memory)
        return Classifier(context.group, gnn, block, self.data, seed, known, budget, self.loaded.members)

    def plain(self, classifier: Classifier) -> dict[str, SplitScores]:
        """See Examples."""
        return plain_scores(classifier)

    def rules(self, classifier: Classifier) -> dict[str, str]:
        """See Examples."""
        return {"test_propagated": "label_propagation", "test_alike": ALIKE[classifier.goal.kind]}

    def called(self, context: Context) -> Names:
        """See Examples."""
        return Names(context, self.loaded, None if self.names is None else list(self.names))

    def lacking_folds(self, group: Group, folds: int) -> Iterator[str]:
        """See Examples."""
        return lacking(group, self.data, folds)

    def folds(self, context: Context, seed: int, folds: int) -> np.ndarray:
        """[n_own] the fold of each labelled row."""
        return draw_folds(context.group, self.data, self.loaded, seed, folds)

    def of_fold(self, context: Context, drawn: np.ndarray, fold: int, held_back: int) -> Self:
        """See Examples."""
        return replace(self, data=split_by_fold(context.group, self.data, drawn, fold, held_back))

    def answer(self, context: Context, done: Learned) -> np.ndarray:
        """What `gather_predictions` says."""
        return gather_predictions(done)

    def digested(self, answer: np.ndarray) -> dict[str, np.ndarray]:
        """See Examples."""
        return {"predictions": answer}

    def sizes(self, context: Context) -> dict[str, Any]:
        """See Examples."""
        graph, members = self.loaded.graph, self.loaded.members
        of_set = {} if members is None else {"graphs": members.count}
        nodes = graph.n if members is None else members.nodes
        arcs = {} if graph.arcs is None else {"arcs": count_arcs(context, self.loaded)}
        return {"name": graph.name, **of_set, "nodes": nodes, "edges": graph.edges, **arcs}

    def named(self, scores: SplitScores) -> dict[str, float | None]:
        """See Examples."""
        return named_scores(scores)

    def write_answer(self, context: Context, done: Learned, answer: np.ndarray) -> None:
        """See Examples."""
        folder, group, asked = context.folder, context.group, context.case.output
        members, graph, data = self.loaded.members, self.loaded.graph, done.classifier.data
        ids = ids_everywhere(group, graph, self.loaded.rows) if members is None else members.ids()
        with raise_together(group, "writing the predictions"):
            folder.write_text(f"predictions/{graph.name}.txt", predictions_text(ids, answer, data))
        if asked.embeddings:
            embedded = gather_embeddings(done)
            with raise_together(group, "writing the embeddings"):
                folder.write_arrays(f"embeddings/{graph.name}.npz", ids=ids, embeddings=embedded)
        if asked.probabilities:
            write_probabilities(context, graph.name, ids, data, gather_probabilities(done))
        gather = partial(_gathered, done.classifier)
        write_sets(context, done, graph.name, plain_ids(ids), blank_of(ids, data), gather)
        write_members(context, done, graph.name, ids, gather)


def read_nodes(context: Context) -> NodeExamples:
    """The nodes, or graphs, of a case's files. Ranks: all call."""
    loaded, data = load(context)
    return NodeExamples(loaded, data, context.case.graph.neighbours)


def named_scores(scores: SplitScores) -> dict[str, float | None]:
    """Scores by split and name, None where no nodes tell them."""
    return {
        f"{split}_{name}": value if each.nodes else None
        for split, each in scores.items()
        for name, value in each.named().items()
    }


def write_probabilities(
    context: Context, name: str, ids: np.ndarray, about: NodeData, likely: np.ndarray
) -> None:
    """probabilities/NAME.npz: how likely [k, classes] each class is for each of some ids. Ranks: all call."""
    with raise_together(context.group, "writing the probabilities"):
        columns = {"classes": about.called(np.arange(likely.shape[1])), "probabilities": likely}
        context.folder.write_arrays(f"probabilities/{name}.npz", ids=ids, **columns)


def write_sets(
    context: Context, done: Learned, name: str, named: list[Any], blank: str,
    gather: Callable[[np.ndarray], np.ndarray],
) -> None:  # fmt: skip
    """sets/NAME.txt, where output.coverage asks for it: lines of the classes in a set, or of the least and
    the largest number of each column.

    named    what lines begin with     blank   what parts it from what follows
    gather   rows of all from own ones
    Ranks    all call
    """
    found, about = done.conformal, done.classifier.about
    if found is None:
        return
    rows = gather(found.intervals if found.sets is None else found.sets)
    with raise_together(context.group, "writing the sets"):
        if found.sets is None:
            text = labels_text(named, rows.reshape(len(rows), -1), about, blank)
        else:
            text = sets_text(named, rows, about, blank)
        context.folder.write_text(f"sets/{name}.txt", text)


def write_members(
    context: Context, done: Learned, name: str, ids: np.ndarray, gather: Callable[[np.ndarray], np.ndarray]
) -> None:
    """members/NAME.npz, where there are several: what each of them predicts [members, n, ...] (classes by
    their columns), and how far they differ [n, ...] (Together.spread). Ranks: all call."""
    if done.together is None:
        return
    arrays = told_by_members(done, gather)
    with raise_together(context.group, "writing what members predict"):
        classes = {} if done.together.kind == "values" else {"classes": called_of(done)}
        context.folder.write_arrays(f"members/{name}.npz", ids=ids, **classes, **arrays)


def told_by_members(done: Learned, gather: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
    """`predicted` [members, n, ...] and `spread` [n, ...] of all rows. Ranks: all call."""
    found = done.together
    return {"predicted": np.stack([gather(each) for each in found.each]), "spread": gather(found.spread)}


def called_of(done: Learned) -> np.ndarray:
    """[classes] what the data call the columns of what is predicted."""
    return done.classifier.about.called(np.arange(done.classifier.classes))


def gather_predictions(done: Learned) -> np.ndarray:
    """[n, classes] uint8 or, of one class for each node, [n] int32; of values [n, columns] float32; of a set
    [graphs, ...].

    Ranks      all call. Raises Diverged where scores are not finite
    """
    classifier = done.classifier
    scores = done.rows_own()[: classifier.block.n_real]
    refuse_infinite_rows(classifier.group, scores)
    return _gathered(classifier, classifier.goal.predicted(scores))


def gather_probabilities(done: Learned) -> np.ndarray:
    """[n, classes] float32, how likely each class is for each node; of a set [graphs, classes]. Ranks: all
    call."""
    return _gathered(done.classifier, done.probabilities_own())


def gather_own(done: Learned, own: np.ndarray) -> np.ndarray:
    """Rows of all nodes, or of all graphs, from own ones [n_own, ...]. Ranks: all call."""
    return _gathered(done.classifier, own)


def gather_embeddings(done: Learned) -> np.ndarray:
    """[n, columns] float32, what the last layer but one says of each node; of a set [graphs, columns], what
    its readout is of. Ranks: all call."""
    return _gathered(done.classifier, done.classifier.embed_own())


def _gathered(classifier: Classifier, own: np.ndarray) -> np.ndarray:
    """Rows of all nodes, or of all graphs, from those of a rank [n_own, ...]. Ranks: all call."""
    block, members = classifier.block, classifier.members
    rows = classifier.group.gather_host(np.ascontiguousarray(own[: block.n_real]), block.rows.row_counts())
    return rows if members is None else rows[members.own_rows]


def predictions_text(ids: np.ndarray, predicted: np.ndarray, data: NodeData) -> str:
    """Lines `id class`, `id class class ...` where a node may have several, of values `id number ...`.

    Those of one class are labels that `graph.node_data_by = "id"` reads.
    """
    return labels_text(plain_ids(ids), predicted, data, blank_of(ids, data))


def blank_of(ids: np.ndarray, data: NodeData) -> str:
    """What parts ids and classes in a line: a tab where names of either have blanks."""
    return "\t" if between_names(data.class_names) == "\t" else blank_between(ids)


def labels_text(named: list[Any], predicted: np.ndarray, data: NodeData, blank: str) -> str:
    """The same of whatever is predicted, by what lines begin with; blank: what parts it from what follows."""
    if predicted.dtype.kind == "f":
        rows = ("".join(f"{blank}{value!s}" for value in row) for row in predicted)
        return "".join(f"{i}{each}\n" for i, each in zip(named, rows))
    if predicted.ndim == 1:
        called = _shown_classes(data)
        return "".join(f"{i}{blank}{called[c]}\n" for i, c in zip(named, predicted.tolist()))
    classes = (data.class_ids[np.flatnonzero(row)].tolist() for row in predicted)
    chosen = ("".join(f"{blank}{c}" for c in each) for each in classes)
    return "".join(f"{i}{each}\n" for i, each in zip(named, chosen))


def sets_text(named: list[Any], sets: np.ndarray, data: NodeData, blank: str) -> str:
    """Lines of the classes in sets [k, classes] bool, by what lines begin with."""
    called = [f"{blank}{each}" for each in _shown_classes(data)]
    chosen = ("".join(called[c] for c in np.flatnonzero(row).tolist()) for row in sets)
    return "".join(f"{i}{each}\n" for i, each in zip(named, chosen))


def _shown_classes(data: NodeData) -> list[str]:
    """The classes, as files of labels have them."""
    return [quoted(escaped(str(c))) for c in data.called(np.arange(len(data.class_ids))).tolist()]
