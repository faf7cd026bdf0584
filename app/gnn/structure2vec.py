"""structure2vec on row partitions and batches of states (RL4GO eq. 1; Dai et al. 2016)."""

from dataclasses import dataclass
from typing import Any

from app.gnn.parameters import Parameters
from app.gnn.small import small_product
from app.memory.shelf import Kept, Shelf
from app.numerics.products import Finish, Operand
from app.sparse.batch import StateBatch

Array = Any
ROUND_ARRAYS = 5  # [rows, K] that a round needs at once: backward H_L, dZ, H, dN and the next dZ


@dataclass
class NodeInputs:
    """What a state looks like to the network, on this rank.

    x_own         node features as rows of a table: x.X[x.index] is [rows, F]
    alive_entries [entries of the table, 1]   1 for entries of nodes that are not removed
    alive_own     [rows]      1 for nodes not removed: only their edges count
    candidate_own [rows]      1 for nodes with a live edge
    present_own   [rows]      1 for nodes that have an embedding (with the paper's features also removed ones)
    scale_own     [rows]      factor of neighbour sums: 0 where not alive
    weights_own   [rows, 2]   sums of positive and of negated negative weights to live neighbours, or None;
                  where all weights are one, rows of a table with the index of x_own
    mirror        [entries of the table] int, the entry of a node as an edge of negative weight shows it, or
                  None: edges show nodes as they are
    """

    x_own: Operand
    alive_entries: Array
    alive_own: Array
    candidate_own: Array
    present_own: Array
    scale_own: Array
    weights_own: Operand | None = None
    mirror: Array | None = None

    def mirrored(self, part: Operand) -> Operand:
        """Rows that stand in a table, as edges of negative weight show them."""
        return Operand(part.X[self.mirror], part.index, part.scale)


class Structure2Vec:
    """L rounds of message passing over the residual graph.

    Source    RL4GO eq. 1:  h_v <- relu(theta1 x_v + theta4 sum_u h_u + theta3 sum_u relu(theta2 W(v,u)))
    Forward   T   = plus relu(theta2) + minus relu(-theta2)       [rows, K], the edge term before theta3
              N_l = scale * A (alive * H_{l-1})               scale is 0 where not alive
              U_l = [x | T | N_l | H_{l-1}]     Z_l = U_l W_l     H_l = present * relu(Z_l)
              H_0 = 0, so U_1 = [x | T]: the first round needs no product; where x and T depend on a state
              and a degree only, H_1 is a table, and numbers of its rows travel instead of rows
              W stacks theta1, theta3, theta4 and, as an option, a weight of the node's own embedding
    Shapes    x [rows, F]   H, T, N [rows, K]   W_1 [F (+K), K]   W_l [F (+K) +K (+K), K]
    Backward  dZ = dH * [H > 0]                 H > 0 just where Z > 0 on a present node
              dW_l = U_l^T dZ                   one addend per row block, summed over ranks by the caller
              dU = dZ W_l^T
              dH_{l-1} = alive * A (scale * dN) + dU[own part]     A is symmetric
              of the edge part see `finish`
              dtheta2 = [theta2 > 0] d relu(theta2) - [theta2 < 0] d relu(-theta2)
    Ranks     rows partitioned, weights replicated; L-1 exchanges forward, L-1 backward
    Differs   1. with shared=False each round has its own W; 2. neighbour sums may be scaled; 3. own
              embedding; 4. along an edge of negative weight a neighbour's H_1 is that of its mirror image,
              where a problem has these (NodeInputs.mirror); dZ_1 of the images adds to dW_1 with their x
    """

    def __init__(
        self,
        layers: int,
        dimension: int,
        features: int,
        *,
        shared: bool,
        self_weight: bool,
        edge_weights: bool,
    ) -> None:
        self.layers, self.K, self.F = layers, dimension, features
        self.shelf: Shelf | None = None
        self.shared, self.self_weight, self.edge_weights = shared, self_weight, edge_weights
        self.first_rows = features + (dimension if edge_weights else 0)
        self.later_rows = self.first_rows + dimension * (2 if self_weight else 1)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Parameter shapes by name."""
        shapes: dict[str, tuple[int, ...]] = {}
        if self.shared:
            rows = self.first_rows if self.layers == 1 else self.later_rows
            shapes["embed.W"] = (rows, self.K)
        else:
            for layer in range(self.layers):
                rows = self.first_rows if layer == 0 else self.later_rows
                shapes[f"embed.W{layer + 1}"] = (rows, self.K)
        if self.edge_weights:
            shapes["embed.theta2"] = (1, self.K)
        return shapes

    def constants(self) -> dict[str, float]:
        """What parameters that are not drawn begin with: all are drawn."""
        return {}

    def weight(self, params: Parameters, layer: int) -> Array:
        """W of a round, counted from 0."""
        if self.shared:
            W = params["embed.W"]
            return W[: self.first_rows] if layer == 0 else W
        return params[f"embed.W{layer + 1}"]

    def forward(self, params: Parameters, batch: StateBatch, inputs: NodeInputs) -> tuple[Array, list[Any]]:
        """H_own [rows, K] and what backward needs. Ranks: all call."""
        return self.embed(params, batch, inputs, pool=False)[:2]

    def embed(
        self, params: Parameters, batch: StateBatch, inputs: NodeInputs, *, pool: bool, keep: bool = True
    ) -> tuple[Array, list[Any], Array | None]:
        """As `forward`, and where asked the sums over the nodes of each row block, [owned blocks, states*K].

        keep    False: there is no backward pass
        Ranks   all call
        """
        device, fixed = batch.device, self._fixed_parts(params, batch, inputs)
        masked_relu = Finish(relu=True, scale=inputs.present_own)
        H, saved, sums = self._first_round(params, batch, inputs, fixed), [], None
        saved.append(([], self._shelved(H, keep)))
        for layer in range(1, self.layers):
            self._make_room(batch)
            met = [self._neighbours(batch, inputs, H)]
            if self.self_weight:
                met.append(H)
            operands = (fixed + met, self.weight(params, layer), masked_relu)
            if pool and layer == self.layers - 1:
                Z, sums = device.dense_pooled(*operands, batch.members)
            else:
                Z = device.dense(*operands)
            H = Operand(Z)
            held = [self._shelved(met[0], keep), *([saved[-1][1]] if self.self_weight else [])]
            last = layer == self.layers - 1  # whose H the caller holds
            saved.append((held, H if last else self._shelved(H, keep)) if keep else ([], None))
            del met, operands
        H_own = H.X if H.index is None else H.rows()
        if pool and sums is None:
            sums = device.fold_members(batch.members, H_own)
        return H_own, saved, sums

    def _shelved(self, part: Operand, keep: bool) -> Any:
        """A part for the backward pass; under a limit of memory rows of its own go on the shelf."""
        if self.shelf is None or not keep or part.index is not None:
            return part
        return _KeptPart(self.shelf.keep(part.X), part.scale)

    def _make_room(self, batch: StateBatch) -> None:
        """Before a round: let rows leave the shelf that would not fit beside the round's own."""
        if self.shelf is not None:
            arrays = 4 * self.K * (ROUND_ARRAYS + self.self_weight)
            self.shelf.clear_for(arrays * batch.rows, arrays * batch.most_rows)

    def _fixed_parts(self, params: Parameters, batch: StateBatch, inputs: NodeInputs) -> list[Operand]:
        """x and T, which are the same in every round; where T is a function of the degree, in one table."""
        if not self.edge_weights:
            return [inputs.x_own]
        device, weights = batch.device, inputs.weights_own
        T = device.row_product(weights.X, self.relu_pair(device.xp, params))
        if weights.index is None:
            return [inputs.x_own, Operand(T)]
        return [Operand(device.xp.concatenate([inputs.x_own.X, T], axis=1), weights.index)]

    def _first_round(
        self, params: Parameters, batch: StateBatch, inputs: NodeInputs, fixed: list[Operand]
    ) -> Operand:
        """H_1; where x and T are one table it is a table too, with the same index."""
        W = self.weight(params, 0)
        if len(fixed) > 1:
            return Operand(batch.device.dense(fixed, W, Finish(relu=True, scale=inputs.present_own)))
        return Operand(batch.device.dense([Operand(fixed[0].X)], W, Finish(relu=True)), fixed[0].index)

    @staticmethod
    def _neighbours(batch: StateBatch, inputs: NodeInputs, H: Operand) -> Operand:
        """scale * A (alive * H)."""
        if H.index is not None:
            table = H.X * inputs.alive_entries
            if inputs.mirror is not None:
                codes_and_scale = (H.index, inputs.alive_own, inputs.scale_own)
                return batch.signed_lookup(table, table[inputs.mirror], *codes_and_scale)
            return batch.lookup_part(table, H.index, inputs.alive_own, inputs.scale_own)
        H_own = H.X
        if inputs.alive_own is not inputs.present_own:
            H_own = batch.device.dense([], H_own[:0], Finish(base=H_own, base_scale=inputs.alive_own))
        return Operand(batch.times(H_own, inputs.alive_own), scale=inputs.scale_own)

    def backward(
        self, params: Parameters, batch: StateBatch, inputs: NodeInputs, saved: list[Any], dZ_own: Array
    ) -> dict[str, Array]:
        """Gradient addends [owned blocks, size] by parameter name, for `finish` once they are summed.

        W lacks the rows of T; "edges L" is [plus | minus]^T dZ_L. Some are views of one array.

        dZ_own   [rows, K], dH_L * [H_L > 0]. Ranks: all call
        """
        parts: dict[str, Array] = {}
        dimage_own = None
        for layer in reversed(range(self.layers)):
            self._make_room(batch)
            columns = [*self._fixed_columns(batch.device.xp, inputs), *map(_whole, saved[layer][0])]
            # Below the last round only nodes that are alive have a gradient, unless a node's own H is met.
            last = layer == self.layers - 1
            live_own = inputs.present_own if last or self.self_weight else inputs.alive_own
            part = batch.gram_part(columns, dZ_own, live_own)
            if dimage_own is not None:
                part = part + batch.gram_part([inputs.mirrored(inputs.x_own)], dimage_own, inputs.alive_own)
            del columns
            if self.edge_weights:
                first, end = self.F * self.K, (self.F + 2) * self.K
                parts[f"edges {layer}"] = part[:, first:end]
                part = batch.device.xp.concatenate([part[:, :first], part[:, end:]], axis=1)
            self._add(parts, layer, part)
            if layer > 0:
                Wt = self.weight(params, layer)[self.first_rows :].T
                met = _whole(saved[layer - 1][1])
                dZ_own, dimage_own = self._through_round(batch, inputs, Wt, dZ_own, met)
                _drop(*saved[layer][0], saved[layer - 1][1])
        return parts

    def _fixed_columns(self, xp: Any, inputs: NodeInputs) -> list[Operand]:
        """x, and the sums of edge weights where they are used, for the gradients of every round."""
        weights = inputs.weights_own
        if not self.edge_weights:
            return [inputs.x_own]
        if weights.index is None:
            return [inputs.x_own, weights]
        return [Operand(xp.concatenate([inputs.x_own.X, weights.X], axis=1), weights.index)]

    def _through_round(
        self, batch: StateBatch, inputs: NodeInputs, Wt: Array, dZ_own: Array, H: Operand
    ) -> tuple[Array, Array | None]:
        """dZ_{l-1} from dZ_l; Wt [K, K (+K)] is the part of W_l^T that meets N and H_{l-1} = H.

        returns   that, and where nodes have mirror images the same of the images' H
        """
        device, signed = batch.device, inputs.mirror is not None and H.index is not None
        dN_own = device.dense([Operand(dZ_own)], Wt[:, : self.K], Finish(scale=inputs.scale_own))
        if not signed and not self.self_weight:
            return batch.times(dN_own, inputs.alive_own, H), None
        if signed:
            dH_own, dimage_own = batch.signed_times(dN_own, inputs.alive_own)
            dimage_own = _gated(device, dimage_own, inputs.alive_own, inputs.mirrored(H))
        else:
            dH_own, dimage_own = batch.times(dN_own, inputs.alive_own), None
        if not self.self_weight:
            return _gated(device, dH_own, inputs.alive_own, H), dimage_own
        alive_own = None if inputs.alive_own is inputs.present_own else inputs.alive_own
        then = Finish(dH_own, alive_own, scale=inputs.present_own, gate=H.X, gate_index=H.index)
        return device.dense([Operand(dZ_own)], Wt[:, self.K :], then), dimage_own

    def _add(self, parts: dict[str, Array], layer: int, part: Array) -> None:
        """Collect one layer's addends; a shared W sums them over layers, from the last to the first."""
        if not self.shared:
            parts[f"embed.W{layer + 1}"] = part
        elif "embed.W" not in parts:
            parts["embed.W"] = part
        else:
            parts["embed.W"][:, : part.shape[1]] += part

    def finish(self, params: Parameters, gradient: dict[str, Array]) -> dict[str, Array]:
        """From the summed parts of backward to gradients by parameter name; others pass.

        T = [plus | minus] R with R = [relu(theta2); relu(-theta2)], so with E_l = [plus | minus]^T dZ_l the
        rows of dW_l that meet T are R^T E_l, and dR = sum_l E_l W_l[T rows]^T.
        """
        if not self.edge_weights:
            return gradient
        xp = params.device.xp
        R, dR = self.relu_pair(xp, params), None
        for layer in reversed(range(self.layers)):
            E = gradient.pop(f"edges {layer}").reshape(2, self.K)
            term = small_product(params.device, E, self.weight(params, layer)[self.F : self.first_rows].T)
            dR = term if dR is None else dR + term
            dT_rows = small_product(params.device, R.T, E).reshape(-1)
            self._insert(xp, gradient, layer, dT_rows)
        theta2 = params["embed.theta2"][0]
        gradient["embed.theta2"] = dR[0] * (theta2 > 0) - dR[1] * (theta2 < 0)
        return gradient

    def _insert(self, xp: Any, gradient: dict[str, Array], layer: int, dT_rows: Array) -> None:
        """Put the rows of T behind those of x in the gradient of a round's W; a shared W sums them."""
        name = "embed.W" if self.shared else f"embed.W{layer + 1}"
        first, end = self.F * self.K, self.first_rows * self.K
        if self.shared and layer < self.layers - 1:
            gradient[name][first:end] += dT_rows
        else:
            dW = gradient[name]
            gradient[name] = xp.concatenate([dW[:first], dT_rows, dW[first:]])

    @staticmethod
    def relu_pair(xp: Any, params: Parameters) -> Array:
        """[2, K]: relu(theta2) and relu(-theta2)."""
        theta2 = params["embed.theta2"]
        return xp.concatenate([xp.maximum(theta2, 0), xp.maximum(-theta2, 0)], axis=0)


def _gated(device: Any, D: Array, scale: Array, H: Operand) -> Array:
    """scale * D * [H > 0]."""
    return device.dense([], D[:0], Finish(base=D, base_scale=scale, gate=H.X, gate_index=H.index))


@dataclass
class _KeptPart:
    """A part whose rows lie on a shelf."""

    rows: Kept
    scale: Array | None


def _whole(part: Any) -> Operand:
    """A part with its rows."""
    return Operand(part.rows.get(), None, part.scale) if isinstance(part, _KeptPart) else part


def _drop(*parts: Any) -> None:
    """Rows that the backward pass has read."""
    for part in parts:
        if isinstance(part, _KeptPart):
            part.rows.drop()
