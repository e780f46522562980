"""The catalogue: specs are parsed, checked and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from downclock.errors import InvalidInput
from downclock.planners.catalog import CATALOG, load_registered, policy, register
from downclock.planners.default import DEFAULT
from downclock.planners.lists.lengths import OneClock
from downclock.planners.lists.policy import ListPolicy
from downclock.planners.lists.voltage_grid import VoltageGrid


@pytest.mark.parametrize("name", CATALOG)
def test_every_entry_makes_a_policy_that_keeps_its_name(name: str) -> None:
    made = policy(name)
    assert callable(made.objection)
    assert made.name == name
    assert CATALOG[name].summary


def test_the_default_is_in_the_catalogue() -> None:
    assert DEFAULT in CATALOG


def test_parameters_set_the_parts_and_appear_in_the_name() -> None:
    made = policy("edl:theta=0.90,rho=120,start=stream,dvfs=on")
    assert isinstance(made, ListPolicy)
    assert (made.theta, made.patience, made.group, made.prior_alone) == (0.9, 120.0, False, False)
    assert made.name == "edl:theta=0.9,rho=120,start=stream"
    assert policy("edl:dvfs=off,group=off").name == "edl:dvfs=off,group=off"


def test_readings_choose_their_parts() -> None:
    assert policy("edl:grid=0.05").lengths == VoltageGrid(0.05)  # type: ignore[attr-defined]
    assert policy("edl:grid=0.1,slack=on").lengths == VoltageGrid(0.1, slack=True)  # type: ignore[attr-defined]
    assert policy("edl:dvfs=off").lengths == OneClock()  # type: ignore[attr-defined]
    assert policy("bin").first_fit == "worst"  # type: ignore[attr-defined]
    assert policy("bin:start=load").first_fit == "lightest"  # type: ignore[attr-defined]
    assert policy("bin:start=peak").first_fit == "loosest"  # type: ignore[attr-defined]
    assert not policy("bin:start=peak").prior_alone  # type: ignore[attr-defined]
    assert policy("bin:start=peak-prior").prior_alone  # type: ignore[attr-defined]
    assert policy("edf-bf:by=load").fit == "fullest"  # type: ignore[attr-defined]
    assert policy("edf-bf:by=peak").fit == "tightest"  # type: ignore[attr-defined]
    assert policy("edl:slot=60").inner.slot_s == 60.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nobody", "policy='nobody' is not a policy; there are: bin"),
        (
            "edl:beta=1",
            "policy 'edl': beta='1' is not a parameter of this policy; did you mean 'theta'?",
        ),
        ("edl:theta", "policy 'edl': theta needs a value"),
        ("edl:theta=2", "policy 'edl': theta=2.0 must be above 0 and at most 1"),
        ("edl:theta=high", "policy 'edl': theta='high' must be a number"),
        ("edl:dvfs=maybe", "policy 'edl': dvfs='maybe' must be on or off"),
        ("edl:start=late", "policy 'edl': start='late' must be one of batch, stream"),
        ("edl:rho=-1", "policy 'edl': rho=-1.0 must be finite and not negative"),
        ("edl:rho=soon", "policy 'edl': rho='soon' must be one of break-even, never"),
        (
            "prompt:reserve=1e15",
            "policy 'prompt': reserve=1000000000000000.0 must be between 0 and 1000",
        ),
        ("edl:grid=1e-9", "policy 'edl': grid=1e-09 must be at least 0.001"),
        ("edf-bf:by=luck", "policy 'edf-bf': by='luck' must be one of end, load, peak"),
    ],
)
def test_a_wrong_spec_is_refused_in_one_sentence(spec: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        policy(spec)
    assert words in str(caught.value)


def offer(folder: Path, points: str, module: str) -> None:
    """As installers leave it: a module, and beside it what its distribution offers."""
    offered = folder / "own_policies-1.0.dist-info"
    offered.mkdir()
    (offered / "METADATA").write_text("Metadata-Version: 2.1\nName: own-policies\nVersion: 1.0\n")
    (offered / "entry_points.txt").write_text(f"[downclock.policies]\n{points}\n")
    name = points.split(" = ")[1].partition(":")[0]
    (folder / f"{name}.py").write_text(module)


def test_an_installed_package_brings_its_policies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(
        tmp_path,
        "sprint = own_policies:add",
        "import downclock as dc\n"
        "def sprint(rho):\n    return dc.policy(f'race:rho={rho:g}')\n"
        "def add():\n    dc.register('sprint', 'races', sprint, rho=60.0)\n",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("downclock.planners.catalog.CATALOG", dict(CATALOG))
    load_registered.cache_clear()
    assert policy("sprint:rho=90").patience == 90.0  # type: ignore[attr-defined]
    load_registered.cache_clear()


@pytest.mark.parametrize("point", ["bad_policies:add", "bad_policies:none", "no.module:add"])
def test_a_package_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """It is no error of ours, and who reads of it has to know whose it is."""
    offer(tmp_path, f"broken = {point}", "def add():\n    raise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(tmp_path)
    load_registered.cache_clear()
    with pytest.raises(InvalidInput, match=rf"entry point .*broken='{point}' fails"):
        load_registered()
    load_registered.cache_clear()


@pytest.mark.parametrize(
    ("name", "defaults", "words"),
    [
        ("", {}, "must be a name without"),
        ("my,own", {}, "policy='my,own' must be a name without"),
        ("mine", {"foo": 1.0}, "policy 'mine': parameters do not fit what makes it"),
    ],
)
def test_what_no_spec_can_name_is_not_registered(
    monkeypatch: pytest.MonkeyPatch, name: str, defaults: dict[str, float], words: str
) -> None:
    monkeypatch.setattr("downclock.planners.catalog.CATALOG", dict(CATALOG))
    with pytest.raises(InvalidInput, match=words):
        register(name, "races", lambda rho=0.0: policy("race"), **defaults)
