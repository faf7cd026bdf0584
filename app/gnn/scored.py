"""Scored: what a classifier says of its rows, and how good that is."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from app.gnn.goals import count_rows, pick_rows, with_areas
from app.gnn.metrics import SplitScores
from app.graphs.nodes.data import SPLITS

Array = Any


class Scored:
    """What Classifier evaluates; its attributes are the classifier's."""

    def scores_own(self) -> np.ndarray:
        """[n_own, classes] host copy of the class scores of own rows, without dropout. Ranks: all call."""
        return self._with_scores(lambda Z: np.array(self.device.get(Z)))

    def real_rows(self, rows: np.ndarray) -> np.ndarray:
        """Rows of scores [n_own, ...] without those of padding."""
        return rows[: self.block.n_real]

    def _with_scores(self, read: Callable[[Array], Any]) -> Any:
        """What is read from the class scores of own rows while they stand in a buffer. Ranks: all call."""
        engine = self.engine
        with engine.program("evaluation"):
            Z = self.model.forward(engine, self.features, None)
            found = engine.apply("loss", "scores", [Z], [], lambda: read(Z.array))
            engine.free(Z)
        return found

    def embed_own(self) -> np.ndarray:
        """[n_own, width] host copy of what the last layer reads, of whole graphs of what it is a readout of,
        without dropout. Ranks: all call."""
        engine = self.engine
        with engine.program("embedding"):
            H = self.model.embed(engine, self.features)
            found = engine.apply("loss", "embedding", [H], [], lambda: np.array(self.device.get(H.array)))
            engine.free(H)
        return found

    def predict_own(self) -> np.ndarray:
        """[n_own] classes, or [n_own, columns], as the goal has them, of own rows. Ranks: all call."""
        return self.goal.predicted(self.scores_own())

    def probabilities_own(self) -> np.ndarray:
        """[n_own, classes] float32, how likely each class is for own rows. Ranks: all call."""
        return self.goal.probabilities(self.scores_own())

    def evaluate(self, also: str = "") -> SplitScores:
        """Scores on training, validation and test nodes.

        also    what is asked for of the validation nodes besides: "loss", "auc" or "ap" (also gives both)
        Ranks   all call
        """
        return self._evaluate(("val",) if also in ("auc", "ap") else (), also == "loss")

    def evaluate_ranking(self) -> SplitScores:
        """`evaluate`, and areas under ROC curves of all splits. Ranks: all call."""
        return self._evaluate(self._ranked(), False)

    def _ranked(self) -> tuple[str, ...]:
        """The splits whose scores have areas: all, where the goal has any."""
        kind = self.goal.kind
        return tuple(SPLITS) if kind == "labels" or (kind == "classes" and self.classes == 2) else ()

    def evaluate_rows(self, Z_own: np.ndarray) -> SplitScores:
        """`evaluate_ranking` of other scores than the network's; none without labels.

        Z_own   [n_own, classes] float32 on the host, as the goal predicts by
        Ranks   all call
        """
        data, goal, engine = self.about, self.goal, self.summed
        if not data.classes:
            return {}
        if goal.kind == "values":
            measured = goal.measure(engine, data, self._targets[0], self.device.put(Z_own))
        else:
            measured = count_rows(data, goal.predicted(Z_own), self.classes)
        scores, ranked = goal.scores(engine, data, measured), self._ranked()
        if not ranked:
            return scores
        rows = self._rows_of(ranked)
        return with_areas(self.group, goal, data, scores, rows, Z_own[rows], ranked)

    def _rows_of(self, splits: tuple[str, ...]) -> np.ndarray:
        """[k] numbers of the own rows in some splits."""
        return np.flatnonzero(np.any([getattr(self.about, name) for name in splits], axis=0))

    def _evaluate(self, ranked: tuple[str, ...], loss: bool) -> SplitScores:
        """Scores from one forward pass, with areas of the ranked splits, or the validation loss."""
        data, goal, engine = self.about, self.goal, self.summed
        if not data.classes:
            return {}
        loss = loss and goal.kind != "values"  # which have it among their scores
        targets, weight = self._targets[0], self._weights_of("val") if loss else None
        rows = self._rows_of(ranked) if ranked else None

        def read(Z: Array) -> tuple[Any, Any, Any]:
            measured = goal.measure(engine, data, targets, Z)
            picked = pick_rows(self.device, Z, rows) if ranked else None
            return measured, picked, self._loss(Z, targets, weight) if loss else None

        measured, picked, losses = self._with_scores(read)
        scores = goal.scores(engine, data, measured)
        if loss:
            scores["val"] = replace(scores["val"], loss=self._sum(losses))
        return with_areas(self.group, goal, data, scores, rows, picked, ranked) if ranked else scores
