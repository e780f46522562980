"""Where jobs can be, as linear programs see it: pairs of a job and a group of equal servers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from downclock.planners.cluster.known.hulls import Hulls
from downclock.planners.cluster.known.kernels.model import Question
from downclock.planners.cluster.known.limited import between_downtimes, draws_too_much
from downclock.planners.cluster.known.question import KnownQuestion, lead_of, sizes_of
from downclock.units import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Every (job, group of equal servers, kind) that can be (p,), with its window and run times."""

    job: Ints
    group: Ints
    kind: Ints
    from_s: Floats
    to_s: Floats
    short_s: Floats
    long_s: Floats

    @classmethod
    def of(cls, asked: KnownQuestion, hull: Hulls) -> Pairs:
        """All pairs; of a gang over several servers one for each group that may be among them."""
        question, jobs = asked.columns, asked.columns.jobs
        sizes = sizes_of(question)
        holds = (sizes >= jobs.gang[:, None, None]) | ((sizes > 0) & _is_wide(question)[:, None])
        job, group, kind = np.nonzero((question.curve[:, None, :] >= 0) & holds)
        lead = lead_of(question)[group]
        curve, scale = question.curve[job, kind], jobs.scale[job]
        from_s = np.maximum(jobs.from_s[job], np.where(lead.begins_on, 0.0, lead.wake_s))
        short_s = hull.time_s[hull.first[curve]] * scale
        piece_s = np.where(asked.whole[kind], short_s, 0.0)
        from_s, to_s = between_downtimes(question, group, from_s, jobs.to_s[job], piece_s)
        long_s = np.minimum(hull.time_s[hull.first[curve + 1] - 1] * scale, to_s - from_s)
        fits = from_s + short_s <= to_s * (1.0 + 1e-9) + 1e-9
        fits &= ~draws_too_much(asked, job, group, kind)
        columns = (job, group, kind, from_s, to_s, short_s, np.maximum(long_s, short_s))
        return cls(*(column[fits] for column in columns))

    def works(
        self, question: Question, hull: Hulls, pair: Ints
    ) -> tuple[Ints, Ints, Floats, Floats]:
        """Ways to work (w,) in cells (c,), each of a pair: cell, pair, run time and joules of each.

        Both are of the whole job; joules are what all its processors take more than idling.
        """
        cell, corner = hull.corners(question.curve[self.job, self.kind][pair])
        of, jobs = pair[cell], question.jobs
        time_s = hull.time_s[corner] * jobs.scale[self.job[of]]
        own_w = lead_of(question).shared_w[self.group] - question.kinds.idle_w[self.kind]
        joules = hull.energy_j[corner] * jobs.scale[self.job[of]] + own_w[of] * time_s
        return cell, of, time_s, jobs.gang[self.job[of]] * joules


def closed(asked: KnownQuestion) -> KnownQuestion:
    """The question with a latest end for all jobs, where nothing is gained by a later one."""
    question = asked.columns
    jobs = question.jobs.copy()
    jobs.to_s = np.minimum(jobs.to_s, _latest_s(question))
    return replace(asked, columns=question._replace(jobs=jobs))


def _latest_s(question: Question) -> float:
    """A time by which all jobs can have ended, at no more cost.

    After the last deadline, arrival, downtime and step of the price only jobs without a deadline
    are left, and a time in which none of them runs and no server wakes can be cut out.
    """
    jobs = question.jobs
    endless = np.flatnonzero(~np.isfinite(jobs.to_s))
    if not endless.size:
        return float(jobs.to_s.max())
    times_s = (jobs.to_s, jobs.from_s, question.tariff[0], question.down.ravel())
    since_s = max(float(each[np.isfinite(each)].max(initial=0.0)) for each in times_s)
    curve = question.curve[endless]
    slowest_s = np.where(curve >= 0, question.entries.time_s[question.curves.end - 1][curve], 0.0)
    run_s = slowest_s.max(axis=1) * jobs.scale[endless]
    wake_s = question.servers.wake_s
    return since_s + float(np.sum(run_s + (wake_s.sum() if question.caps.size else wake_s.max())))


def _is_wide(question: Question) -> Bools:
    """Tell of jobs and kinds (n, k) whether no server that is never down holds the gang."""
    sizes, lead = sizes_of(question), lead_of(question)
    works = lead.down_first == lead.down_end
    largest = sizes[works].max(axis=0, initial=0)
    return np.asarray(question.jobs.gang[:, None] > largest)


def is_spread(question: Question) -> bool:
    """Tell whether a gang may be on servers of several groups at once."""
    wide = _is_wide(question) & (question.jobs.gang[:, None] > 1) & (question.curve >= 0)
    return bool(np.any(wide & (np.sum(sizes_of(question) > 0, axis=0) > 1)))


def counts_when(question: Question) -> bool:
    """Tell whether it counts when a job draws what it draws: prices change, or power is capped."""
    return bool(question.tariff.shape[1] > 1 or question.caps.size)
