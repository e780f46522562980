"""What a trace would have cost otherwise: same jobs, same time, every plan verified."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import downclock as dc
from downclock.errors import InvalidInput
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.report.whatif import whatif_html, whatif_page
from downclock.schedule.account.account import windows_s
from downclock.study import whatif as module
from downclock.study.as_it_ran import as_it_ran
from downclock.study.changed import at_default, sleepless
from downclock.study.whatif import Knobs, WhatIf, whatif
from downclock.workloads.traces.read import read_trace
from downclock.workloads.traces.to_problem import Choices, converted
from downclock.workloads.traces.trace import Trace

HEAD = "timestamp,duration,num_gpus,gpu_time,cluster\n"
KNOBS = Knobs(slack=(1.5,), shares=(0.5, 0.0), errors=(0.2,))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Forty jobs of one GPU, in five hours of the night and five of the day, seeded."""
    draw = np.random.default_rng(7)
    rows = [
        f"2017-10-09 {k // 4 + 7 * (k // 20):02d}:{15 * (k % 4):02d}:00,"
        f"{draw.integers(300, 7200)},1,1,vc\n"
        for k in range(40)
    ]
    path = tmp_path_factory.mktemp("trace") / "philly.csv"
    path.write_text(HEAD + "".join(rows))
    return read_trace(path)


def asked(trace: Trace, choices: Choices | None = None, **knobs: object) -> WhatIf:
    choices = replace(Choices() if choices is None else choices, per_server=2)
    fresh = replace(trace, ledger=replace(trace.ledger, dropped=dict(trace.ledger.dropped)))
    return whatif(converted(fresh, None, choices), choices, knobs=replace(KNOBS, **knobs))


@pytest.fixture(scope="module")
def found(trace: Trace) -> WhatIf:
    return asked(trace)


def by_policy(case, name: str):
    return next(each for each in case.figures if each.policy == name)


def test_all_ways_run_the_same_jobs_and_are_billed_over_the_same_time(found):
    problem = found.found.problem
    ran, last_s = as_it_ran(found.found), float(problem.tasks.arrival_s.max())
    for name in ("race", "late"):
        bill = dc.account(problem, dc.plan(problem, name), boundary=last_s)
        assert by_policy(found.usual, name).energy_j == pytest.approx(bill.total_j)
    assert by_policy(found.usual, "as-it-ran").energy_j == pytest.approx(
        dc.account(problem, ran).total_j
    )
    assert [each.left_out for each in found.usual.figures] == [0, 0, 0, 0]


def test_one_job_that_runs_for_weeks_keeps_no_other_server_on(tmp_path):
    """Two servers for an hour of submissions; one of them has a job of thirty days."""
    rows = "2017-10-09 00:00:00,2592000,2,1,vc\n2017-10-09 00:00:00,60,2,1,vc\n"
    path = tmp_path / "philly.csv"
    path.write_text(HEAD + rows + "2017-10-09 01:00:00,600,1,1,vc\n")
    found = asked(read_trace(path), slack=(), shares=(), errors=())
    bill = found.bills["as-it-ran"]
    on_s = 2_592_000.0 + 4200.0
    assert bill.energy_j["host"] == pytest.approx(300.0 * on_s)
    assert bill.energy_j["idle"] == pytest.approx(40.0 * (2 * on_s - 2 * 2_592_060.0 - 600.0))
    assert found.busy == pytest.approx((2 * 2_592_060.0 + 600.0) / (2 * on_s))


def test_the_page_says_how_much_of_the_saving_is_sleep(found):
    ran, race = found.usual.figures[:2]
    saved = 100.0 * (1.0 - race.energy_j / ran.energy_j)
    said = whatif_page(found).lines[1]
    assert f"busy {100 * found.busy:.1f} % of the time; full speed with" in said
    assert f"idle servers asleep already saves {saved:.1f} %" in said
    less = replace(ran, energy_j=race.energy_j)
    awake = replace(found.usual, figures=(less, *found.usual.figures[1:]))
    assert "already saves" not in whatif_page(replace(found, usual=awake)).lines[1]


def test_a_plan_saves_beside_the_trace_and_full_speed_and_more_time_saves_more(found):
    """Eight processors are half busy, so tasks hurry: the best clock in hindsight may save more."""
    saved = [found.usual.saved(each) for each in ("as-it-ran", "race")]
    assert min(saved) > 0.0
    assert saved[0] == max(saved)
    tight = next(case for case in found.cases if case.setting == "1.5 x run")
    assert tight.figures[-1].energy_j >= found.usual.figures[-1].energy_j


def test_nobody_lets_a_job_be_slowed_down(found):
    """All jobs at default clocks: their run energy is that of race."""
    case = next(case for case in found.cases if case.setting == "0 %")
    problem = at_default(found.found.problem, np.arange(len(found.found.problem.tasks)))
    plan, race = dc.plan(problem, "late"), dc.plan(found.found.problem, "race")
    assert dc.verify(problem, plan).ok
    run_j = dc.account(found.found.problem, race).energy_j["run"]
    assert dc.account(problem, plan).energy_j["run"] == pytest.approx(run_j)
    assert case.saved("as-it-ran") < found.usual.saved("as-it-ran")
    assert case.saved("race") < found.usual.saved("race")


def test_servers_that_never_sleep_save_nothing_by_sleeping(found):
    """Asleep or idle is the same draw: full speed costs what the trace did, second for second."""
    case = next(case for case in found.cases if case.setting == "never sleep")
    platform = sleepless(found.found.problem.platform)
    idle_w = platform.host_w + np.bincount(platform.server, platform.idle_w)
    assert platform.sleep_w == pytest.approx(idle_w)
    problem = replace(found.found.problem, platform=platform)
    last_s = float(problem.tasks.arrival_s.max())
    plans = as_it_ran(found.found), dc.plan(problem, "race")
    idle_j = [float(idle_w @ windows_s(problem, plan, last_s)) for plan in plans]
    ran, race = by_policy(case, "as-it-ran"), by_policy(case, "race")
    assert race.energy_j - idle_j[1] == pytest.approx(ran.energy_j - idle_j[0])
    assert 0.0 < case.saved("as-it-ran") < found.usual.saved("as-it-ran")


def test_wrong_estimates_are_met_with_a_reserve(found):
    """Twenty per cent more work than known, and a reserve for that: nothing is late."""
    case = next(case for case in found.cases if case.knob == "run times")
    assert case.figures[-1].late == 0
    assert case.figures[-1].energy_j > found.usual.figures[-1].energy_j, "less is known"
    assert by_policy(case, "race").energy_j == by_policy(found.usual, "race").energy_j


def test_where_estimates_are_wrong_jobs_still_run_for_as_long_as_in_the_trace(tmp_path):
    """At default clocks one job's energy is that of the trace, whatever was known of it."""
    path = tmp_path / "philly.csv"
    path.write_text(HEAD + "2017-10-09 00:00:00,36000,1,1,vc\n")
    trace = read_trace(path)
    for seed in range(3):
        found = asked(trace, Choices(deadline_factor=1.0), slack=(), errors=(0.5,), seed=seed)
        case = next(case for case in found.cases if case.knob == "run times")
        ran, ours = case.figures[0], case.figures[-1]
        if not ours.left_out:
            assert ours.energy_j == pytest.approx(ran.energy_j, rel=0.02)


def test_prices_are_repeated_and_planned_by(trace):
    """Eight dear hours, eight cheap ones, again and again: planned by cost, money goes down."""
    curve = Curve(np.array([0.0, 28800.0]), np.array([0.5, 0.1]), 57600.0)
    prices = Prices((("default", ZonePrices(price=curve, carbon=Curve.constant(400.0))),))
    found = asked(trace, Choices(deadline_factor=8.0), prices=(("day", prices),))
    by_cost = next(case for case in found.cases if case.setting == "day, by cost (thrifty)")
    assert by_cost.figures[-1].money < found.usual.figures[-1].money
    usual = found.usual.figures[-1]
    assert usual.carbon_kg == pytest.approx(usual.energy_j / 3.6e6 * 0.4)
    longer = found.found.problem.prices.of("default").price
    assert longer.at(np.array([0.0, 30000.0, 57600.0, 90000.0])).tolist() == [0.5, 0.1, 0.5, 0.1]
    assert found.usually["prices"] == "day, by energy"


def test_a_policy_that_knows_what_comes_is_refused(trace):
    with pytest.raises(InvalidInput, match="policy='known' looks at jobs before they arrive"):
        whatif(converted(trace), Choices(), spec="known")


def test_flat_prices_are_no_other_question(trace):
    """Where a joule costs the same at all times, the least energy is the least cost."""
    flat = Prices((("default", ZonePrices(price=Curve.constant(0.2))),))
    found = asked(trace, slack=(), shares=(), errors=(), prices=(("flat", flat),))
    assert [case.setting for case in found.cases] == ["never sleep"]
    assert found.usual.saved("race", "money") == pytest.approx(found.usual.saved("race"))


def test_one_job_without_room_does_not_make_the_best_clock_full_speed(found):
    """A cap is chosen by the bill that charges what it leaves out, if that is next to nothing."""
    problem = found.found.problem
    work = module._Work(found.found, found.found, "late")
    race = dc.plan(problem, "race")
    assert work._cost(problem, race) == (False, by_policy(found.usual, "race").energy_j)
    most = int(module.NEXT_TO_NONE * len(problem.tasks)) + 1
    keep = ~np.isin(race.segments.task, np.arange(most))
    rows = {name: getattr(race.segments, name)[keep] for name in race.segments.__slots__}
    lost = replace(race, segments=type(race.segments)(**rows))
    assert work._cost(problem, lost)[0]


def test_reasons_are_counted_without_the_times_of_each_job():
    told = "cannot end by its deadline Thu 07:52:42 as every processor is taken: earliest Thu 15:08"
    general = "cannot end by its deadline, as every processor is taken"
    assert module._in_general(told) == general
    never = "needs 9 processors at once, of one kind; there are 8"
    assert module._in_general(never) == never


SACCT = """\
JobID|Submit|Start|End|ElapsedRaw|AllocTRES|Partition|NodeList
1|2024-03-01T08:00:00|2024-03-01T08:05:00|2024-03-01T10:05:00|7200|cpu=8,gres/gpu=2|gpu|gpu01
2|2024-03-01T08:10:00|2024-03-01T09:05:00|2024-03-01T10:05:00|3600|cpu=8,gres/gpu=4|gpu|gpu01
3|2024-03-01T09:10:00|2024-03-01T09:15:00|2024-03-01T19:15:00|36000|cpu=8,gres/gpu=1|gpu|gpu01
"""


def test_who_refuses_a_job_saves_nothing_of_what_it_kept_awake(tmp_path):
    """The job of ten hours alone keeps a server of 620 W idle awake: 19.4 % were said to be saved.

    The two that are run start at once, at full speed: what `race` does with these two.
    """
    (tmp_path / "sacct.txt").write_text(SACCT)
    found = converted(read_trace(tmp_path / "sacct.txt"))
    found = whatif(found, Choices(), knobs=Knobs((), (), (0.2, 0.5)))
    case = found.cases[-1]
    assert case.setting == "known to 50 %, reserve 50 %"
    assert [each.left_out for each in case.figures] == [0, 0, 0, 1]
    assert (case.jobs, case.covered) == (2, pytest.approx(8.0 / 18.0))
    assert case.saved("race") == pytest.approx(0.0)
    assert case.saved("static-cap") == pytest.approx(0.0)
    assert case.saved("as-it-ran") < 0.03, "alone, its server is on from 8:00 to 10:05"
    page, text = whatif_page(found), whatif_html(found)
    assert any(row[3] == "0.00 % *" for row in page.tables[-1].rows)
    told = "* run times, known to 50 %, reserve 50 %: energy and savings are of the 2 jobs (44.4 %"
    assert page.notes[0].startswith(told)
    assert told.replace(" %", "\u00a0%") in text
    assert {each["compared_jobs"] for each in page.data["cases"]} == {2, 3}


def test_some_jobs_cost_no_more_as_they_ran_than_their_share_of_all(trace):
    """The cluster was on for all: nobody saves by leaving half of the jobs to it."""
    choices = Choices(per_server=2)
    whole = converted(trace, None, choices)
    work = module._Work(whole, whole, "late")
    half = work.by("late")

    def left(problem, rows):
        plan = half.plan(problem, rows)
        keep = np.isin(plan.segments.task, np.flatnonzero(rows % 2 == 0))
        columns = {name: getattr(plan.segments, name)[keep] for name in plan.segments.__slots__}
        return replace(plan, segments=type(plan.segments)(**columns))

    case = work.case("", "", whole.problem, replace(half, plan=left))
    bill = dc.account(whole.problem, as_it_ran(whole))
    share = bill.task_j[::2].sum() / bill.task_j.sum()
    assert case.jobs == 20
    assert case.figures[0].energy_j == pytest.approx(share * bill.total_j, rel=1e-3)


def test_jobs_the_policy_cannot_run_are_left_out_first_and_told(tmp_path):
    rows = "2017-10-09 00:00:00,3600,1,1,vc\n2017-10-09 00:10:00,60,1,1,vc\n"
    path = tmp_path / "philly.csv"
    path.write_text(HEAD + rows)
    late = Choices(grace_s=0.0, deadline_factor=1.0)
    found = asked(read_trace(path), late, slack=())
    kept = len(found.found.problem.tasks)
    assert kept + sum(rows for rows, _ in found.found.trace.ledger.dropped.values()) == 2
    path.write_text(HEAD + "2017-10-09 00:00:00,60,1,1,vc\n")
    assert len(asked(read_trace(path), slack=()).found.problem.tasks) == 1


def test_the_page_begins_with_coverage_and_ends_with_assumptions(found):
    text = whatif_html(found, command=["downclock", "whatif", "a b.csv"])
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", text)
    assert titles[0] == "How much of the trace this is about"
    assert titles[-1] == "Everything that was assumed"
    assert "40 of 40 rows" in text
    assert all(line.split(":")[0] in text for line in found.assumptions)
    assert "downclock whatif &#x27;a b.csv&#x27;" in text
    assert "{{" not in text
    assert "<script" not in text
    assert not re.findall(r"https?://", text)
    assert text == whatif_html(found, command=["downclock", "whatif", "a b.csv"])


def test_the_terminal_says_why_rows_are_left_out(tmp_path):
    """It gave their number only; the page, and JSON, have the reasons."""
    path = tmp_path / "philly.csv"
    path.write_text(HEAD + "2017-10-09 00:00:00,60,1,1,vc\n2017-10-09 00:00:00,60,0,1,vc\n")
    page = whatif_page(asked(read_trace(path), slack=(), shares=(), errors=()))
    assert ("uses no gpus", "1", "0.0") in page.tables[0].rows


def test_a_bar_that_is_longer_than_what_counts_says_so(found):
    assert "as-it-ran: a cluster" not in whatif_html(found)
    ran, *others = found.usual.figures
    less = replace(found.usual, figures=(replace(ran, energy_j=3.6e6), *others))
    assert "of what all jobs of the trace took, 1.0000 kWh." in whatif_html(
        replace(found, usual=less)
    )


def test_jobs_that_are_never_the_same_have_no_savings(found):
    never = replace(found.usual, jobs=0, covered=0.0)
    other = replace(found, usual=never)
    page = whatif_page(other)
    assert page.lines[1] == "No saving can be told: no jobs were found that every way runs."
    assert page.tables[0].rows[0][2:5] == ("other jobs *",) * 3
    assert "% less" not in whatif_html(other)


def test_where_others_cost_less_the_page_says_so(found):
    ran, race, cap, ours = found.usual.figures
    best = replace(ours, energy_j=0.9 * min(race.energy_j, cap.energy_j))
    least = replace(found.usual, figures=(ran, race, cap, best))
    assert "costs less" not in whatif_page(replace(found, usual=least, cases=())).lines[1]
    worse = replace(ours, energy_j=1.1 * race.energy_j)
    beaten = replace(found.usual, figures=(ran, race, cap, worse))
    other = replace(found.cases[0], figures=beaten.figures)
    said = "running at full speed with idle servers asleep costs less."
    capped = "running at the best single clock, asleep when idle"
    both = said.replace(" costs", f" and {capped} cost")
    for page in (whatif_html(replace(found, usual=beaten)),
                 whatif_page(replace(found, usual=beaten)).lines[1]):  # fmt: skip
        assert f"The plan is not the least: {both}" in page
    assert f"In 1 of the other cases {said}" in whatif_html(replace(found, cases=(other,)))


def test_the_usual_case_is_planned_once(trace, monkeypatch):
    seen = Counter()
    real = module.planned

    def counted(problem, chosen):
        seen[chosen.name] += 1
        return real(problem, chosen)

    monkeypatch.setattr(module, "planned", counted)
    asked(trace, slack=(), shares=(), errors=(0.1, 0.2))
    assert seen["race"] == 2, "the usual case, and servers that never sleep"
    assert seen["late"] == 3, "which jobs it can run, beside these"


def test_a_job_left_out_is_counted_by_the_policys_own_reason(trace):
    fits = np.ones(len(trace), dtype=bool)
    fits[:9] = False
    why = np.array([f"reason {k}" for k in (0, 0, 0, 1, 1, 2, 3, 4, 5)] + [""] * (len(trace) - 9))
    left = module._without(trace, fits, why.astype(object), "late")
    assert len(left) == len(trace) - 9
    named = {reason: rows for reason, (rows, _) in left.ledger.dropped.items()}
    assert named == {**dict.fromkeys([f"reason {k}" for k in range(5)], 1), "reason 0": 3,
                     "reason 1": 2, "late cannot run it": 1}  # fmt: skip


def test_every_figure_is_in_the_json_too(found):
    data = whatif_page(found).data
    assert len(data["cases"]) == 4 * (1 + len(found.cases))
    assert data["covered"] == 1.0
    assert {each["policy"] for each in data["cases"]} == {"as-it-ran", "race", "static-cap", "late"}


def test_names_in_a_trace_cannot_break_the_page(tmp_path):
    path = tmp_path / "<b>&.csv"
    path.write_text(
        HEAD + "2017-10-09 00:00:00,3600,1,1,<i>\n2017-10-09 00:00:00,<script>,1,1,vc\n"
    )
    text = whatif_html(asked(read_trace(path), slack=(), shares=(), errors=()))
    assert "<b>&" not in text
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_the_command_writes_the_page(tmp_path, capsys):
    from downclock.cli import main

    path, page = tmp_path / "t.csv", tmp_path / "w.html"
    path.write_text(HEAD + "2017-10-09 00:00:00,3600,1,1,vc\n2017-10-09 01:00:00,1800,1,1,vc\n")
    words = ["whatif", str(path), "-o", str(page), "--flat-price", "0.2", "--flat-carbon", "380"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "2 of 2 rows, 100.0 % of their GPU-hours" in out
    assert "Money saved" in page.read_text()
    assert main(["whatif", str(path), "--policy", "nobody", "-o", str(page)]) == 2
    assert "is not a policy" in capsys.readouterr().err
    assert main(["whatif", str(Path("none.csv")), "-o", str(page)]) == 2


def test_a_policy_that_plans_nothing_is_refused(trace):
    with pytest.raises(InvalidInput, match="policy 'graph:rule=lpt'"):
        whatif(converted(trace), Choices(), spec="graph:rule=lpt", knobs=KNOBS)


def dated(path: Path, day: str) -> Path:
    """Prices of one day: dear from 08:00 to 20:00."""
    rows = [f"{day}T{hour:02d}:00Z,{0.5 if 8 <= hour < 20 else 0.1}\n" for hour in range(24)]
    path.write_text("timestamp,price_per_kwh\n" + "".join(rows))
    return path


@pytest.mark.parametrize("day", ["2017-10-09", "2024-02-01"])
def test_prices_hold_at_their_hours(day, tmp_path, capsys):
    """A job at noon pays the price of noon; one more at midnight does not move the hours."""
    from downclock.cli import main

    prices = dated(tmp_path / "day.csv", day)
    noon = "2017-10-09 12:00:00,3600,1,1,vc\n"
    money = []
    for rows in (noon, "2017-10-09 00:00:00,60,1,1,vc\n" + noon):
        path = tmp_path / "philly.csv"
        path.write_text(HEAD + rows)
        words = ["whatif", str(path), "--prices", str(prices), "--slack", "", "--shares", ""]
        assert (
            main([*words, "--errors", "", "-o", str(tmp_path / "w.html"), "--format", "json"]) == 0
        )
        told = json.loads(capsys.readouterr().out)
        race = next(each for each in told["cases"] if each["policy"] == "race")
        money.append(race["money"] / race["energy_j"] * 3.6e6)
        assert any(f"by date ({day} 00:00 to" in line for line in told["assumptions"])
    assert money[0] == pytest.approx(0.5, rel=0.02)
    assert money[1] == pytest.approx(0.5, rel=0.15), "a server asleep at night pays a little"


def test_jobs_turned_away_leave_the_cluster_as_it_is(tmp_path):
    """Sixteen jobs at once with no time to wake a server: the servers stay sixteen."""
    rows = "".join(f"2017-10-09 00:00:00,{600 * (1 + k % 2)},2,1,vc\n" for k in range(16))
    path = tmp_path / "philly.csv"
    path.write_text(HEAD + rows)
    trace = read_trace(path)
    choices = Choices(per_server=2, grace_s=0.0, deadline_factor=1.0)
    whole = converted(trace, None, choices)
    fits = np.arange(16) % 2 == 0
    part = module._part(whole, fits, trace.where(fits, "late cannot run it"))
    assert part.problem.platform.server_count == whole.problem.platform.server_count == 16
    assert part.problem.tasks.name.tolist() == whole.problem.tasks.name[fits].tolist()
    ran = as_it_ran(part)
    assert dc.account(part.problem, ran).task_j == pytest.approx(
        dc.account(whole.problem, as_it_ran(whole)).task_j[fits]
    )


def test_jobs_that_the_plan_turns_away_are_said_first(found):
    *others, ours = found.usual.figures
    lost = replace(ours, left_out=12)
    usual = replace(found.usual, figures=(*others, lost), jobs=28, covered=0.625)
    said = whatif_page(replace(found, usual=usual)).lines[1]
    assert (
        "It turns away 12 of 40 jobs. All of this is of the 28 jobs (62.5 % of GPU-hours)" in said
    )


def test_money_earned_is_no_part_of_money_spent(found):
    """Less earned than as it ran is a loss in money, not a saving in per cent."""
    ran, *others, ours = found.usual.figures
    paid = [replace(each, money=-13.51, carbon_kg=1.0) for each in (ran, *others)]
    usual = replace(found.usual, figures=(*paid, replace(ours, money=-6.29, carbon_kg=1.0)))
    assert usual.saved("as-it-ran", "money") is None
    assert "7.22 EUR more" in whatif_html(replace(found, usual=usual))
    assert "-6.29 EUR instead of -13.51 EUR" in whatif_html(replace(found, usual=usual))


def test_a_cap_gains_nothing_by_leaving_jobs_out(found):
    """Who turns all away has the bill of the trace as it ran: host and idle power are in it."""
    problem = found.found.problem
    work = module._Work(found.found, found.found, "late")
    nobody = dc.plan(problem, "race")
    rows = {name: getattr(nobody.segments, name)[:0] for name in nobody.segments.__slots__}
    none = replace(nobody, segments=type(nobody.segments)(**rows), spans=nobody.spans.only())
    asleep_j = module._bill(problem, none).total_j
    ran_j = by_policy(found.usual, "as-it-ran").energy_j
    assert work._cost(problem, none) == (True, pytest.approx(ran_j + asleep_j))
