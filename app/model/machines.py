"""A rank with a GPU, assumed: rates in place of measured ones, each with its source or as a guess."""

from dataclasses import dataclass

from app.model.rates import Calibration, DenseRate, Kernels, Network, PassRate, ProductRate

WIDTHS = (1, 4, 16, 64, 256, 512)
INDEX_BYTES = 4  # of a stored entry, whose value is one


@dataclass(frozen=True)
class Accelerator:
    """What is assumed of a GPU; nothing of it was measured with this program.

    memory_bytes_s   that products and passes reach     flops   of dense float32 products without tensor cores
    near_bytes_s     into a rank from ranks of the same machine, of which there are `near`
    far_bytes_s      into a rank from other machines    latency_s   of a message, and of starting kernels
    """

    name: str
    memory_bytes_s: float
    flops: float
    near_bytes_s: float
    far_bytes_s: float
    latency_s: float
    near: int

    def words(self) -> str:
        """All of it in a line."""
        return (
            f"{self.name}: {self.memory_bytes_s / 1e12:g} TB/s of memory, every row that a product reads "
            f"comes from there; {self.flops / 1e12:g} TFLOP/s in dense products; "
            f"{self.near_bytes_s / 1e9:g} GB/s into a rank within {self.near} ranks, "
            f"{self.far_bytes_s / 1e9:g} GB/s beyond; "
            f"{1e6 * self.latency_s:g} us a message; messages and products one after the other"
        )

    def network(self, ranks: int) -> Network:
        """The slowest way between `ranks` ranks."""
        return Network(self.latency_s, self.near_bytes_s if ranks <= self.near else self.far_bytes_s)

    def calibration(self) -> Calibration:
        """The assumptions as rates: products and passes move bytes, dense products count operations."""
        moved, madd = 1 / self.memory_bytes_s, 2 / self.flops
        products = [ProductRate(w, [1.0], [(4 * w + INDEX_BYTES) * moved], [8 * w * moved]) for w in WIDTHS]
        dense = dict.fromkeys(("wide dense", "wide gram"), DenseRate([1.0], [0.0], [madd]))
        passes = dict.fromkeys(("element", "drop", "loss"), PassRate([1.0], [8 * moved]))
        kernels = Kernels(products, products[0], dense, passes, 0.0, {})
        return Calibration(self.name, "assumed", 1, False, kernels, kernels, {}, 0)


# Memory 2 TB/s and 600 GB/s in both directions: MG-GCN section 6.1; 19.5 TFLOP/s: the vendor's data sheet.
# Of memory and links about two thirds are taken to be reached, of the operations half. Far: 200 Gb/s a rank.
ASSUMED = Accelerator("one A100 of a DGX-A100, assumed", 1.4e12, 10e12, 200e9, 25e9, 10e-6, 8)
