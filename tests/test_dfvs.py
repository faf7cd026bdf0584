"""Directed feedback vertex sets: reductions, search and bounds against brute force, damaged proofs, files."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import WORLD_SIZE  # noqa: F401
