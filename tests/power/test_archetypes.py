"""Archetypes: the mean of a card's fitted applications of one class, a second long."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.power.archetypes import CLASSES, Archetype, archetype, card_archetype, card_basis
from downclock.power.library import Library
from downclock.power.library_file import BUILT_IN, built_in_library
from downclock.power.profiles import CpuProfiles, Curved, GpuProfiles

DEFAULT = np.ones((1, 3))


def profile(typical: Archetype) -> Curved:
    return typical.model(*np.array(typical.parameters))


@pytest.mark.parametrize("card", BUILT_IN)
@pytest.mark.parametrize("name", CLASSES)
def test_every_card_has_every_archetype_a_second_long(card: str, name: str) -> None:
    typical = card_archetype(card, name)
    assert typical is not None
    assert typical.power_w is not None
    low, high = CLASSES[name]
    assert low <= typical.core_share <= high
    time_s, power_w = profile(typical).at(np.zeros(1, dtype=int), DEFAULT)
    assert time_s[0] == pytest.approx(1.0)
    assert power_w[0] == pytest.approx(typical.power_w)
    half = np.array([[0.5, 1.0, 1.0]])
    assert profile(typical).at(np.zeros(1, dtype=int), half)[0][0] == pytest.approx(
        1.0 + typical.core_share
    )


def test_a_class_is_near_its_members() -> None:
    """Compute-bound ones of the 1080 Ti at other core clocks: 0.24 % of time, 0.65 % of power."""
    library = built_in_library("gtx1080ti")
    gpu, typical = library.groups[0], card_archetype("gtx1080ti", "compute-bound")
    assert isinstance(gpu, GpuProfiles)
    assert typical is not None
    core = gpu.d_s * gpu.delta / (gpu.d_s + gpu.t0_s)
    members = np.flatnonzero(core >= 2 / 3)
    assert members.size == 14
    basis = library.basis["gtx1080ti"]
    assert basis.law is not None
    cores = np.array(basis.core_mhz) / 1800.0
    points = np.column_stack([cores, np.ones(5), basis.law.min_volt(cores)])
    ours = profile(typical).at(np.zeros(5, dtype=int), points)
    errors = []
    for row in members:
        theirs = gpu.at(np.full(5, row), points)
        unit = gpu.at(np.array([row]), DEFAULT)
        errors.append(
            [
                np.abs(ours[0] / (theirs[0] / unit[0]) - 1).mean(),
                np.abs(ours[1] / typical.power_w / (theirs[1] / unit[1]) - 1).mean(),
            ]
        )
    assert np.mean(errors, axis=0) == pytest.approx([0.0024, 0.0065], abs=1e-4)


def test_the_users_own_measurements_make_archetypes_of_their_card() -> None:
    columns = np.array([[60, 50], [0, 0], [40, 90], [1.0, 0.2], [1, 1], [0.0, 1.8]])
    names = np.array(["quick", "slow"], dtype=object)
    library = Library.of_one_kind(names, "mine", GpuProfiles(*columns))
    compute = archetype(library, "mine", "compute-bound")
    assert compute is not None
    assert (compute.core_share, compute.power_w) == (1.0, 100.0)
    memory = archetype(library, "mine", "memory-bound")
    assert memory is not None
    assert memory.core_share == pytest.approx(0.1)
    assert archetype(library, "mine", "mixed") is None
    assert archetype(library, "h100", "mixed") is None
    assert card_archetype("h100", "mixed") is None


def test_a_cpu_core_is_the_cube_of_its_clock_and_needs_to_be_told_its_watts() -> None:
    typical = card_archetype("cpu", "compute-bound")
    assert typical is not None
    assert typical.model is CpuProfiles
    assert typical.power_w is None
    scaled = CpuProfiles(*np.array(typical.scaled(2.0, 12.0)))
    time_s, power_w = scaled.at(np.zeros(1, dtype=int), np.array([[0.5, 1.0, 1.0]]))
    assert (time_s[0], power_w[0]) == (4.0, 1.5)
    law = card_basis("cpu").law
    assert law is not None
    assert float(law.min_volt(0.5)) == 0.5
