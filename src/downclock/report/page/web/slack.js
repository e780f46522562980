// How much time is left between the end of tasks and their deadlines.

function drawSlack(model, box, note) {
  const slack = Float64Array.from(model.task_slack.filter(Number.isFinite)).sort();
  if (!slack.length) {
    note.textContent = "No task that is done has a deadline.";
    box.hidden = true;
    return;
  }
  const tight = firstAbove(slack, 0, 0, slack.length), middle = slack[slack.length >> 1];
  const many = slack.length.toLocaleString("en");
  note.textContent = `Half of the ${many} tasks with a deadline end more than ${duration(middle)} before it; ${tight === 0 ? "none uses all of its time" : tight === 1 ? "one uses all of its time" : `${tight.toLocaleString("en")} use all of their time`}.`;
  box.replaceChildren(slackShape(slack, box.clientWidth));
}

function slackShape(slack, room) {
  const W = Math.min(560, Math.max(300, room)), H = 320, left = 54, right = W - 18, top = 18, bottom = H - 44;
  const low = Math.min(0, slack[0]), high = slack.at(-1) > low ? slack.at(-1) : low + 1;
  const { step } = timeTicks(low, high, 30), first = Math.floor(low / step);
  const bins = new Uint32Array(Math.max(1, Math.floor(high / step) - first + 1));
  for (const s of slack) bins[Math.min(bins.length - 1, Math.floor(s / step) - first)]++;
  const most = Math.max(...bins), t0 = first * step, t1 = t0 + bins.length * step;
  const x = (t) => left + ((t - t0) / (t1 - t0)) * (right - left), y = (n) => bottom - (n / (most * 1.05)) * (bottom - top);
  const svg = shape("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "How many tasks have how much slack" });
  for (const tick of numberTicks(0, most, Math.min(5, most)).ticks) {
    svg.append(shape("line", { x1: left, x2: right, y1: y(tick), y2: y(tick), stroke: "var(--line)" }));
    svg.append(shape("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, tick.toLocaleString("en")));
  }
  bins.forEach((n, k) => {
    const from = x(t0 + k * step), to = x(t0 + (k + 1) * step);
    if (!n) return;
    const bar = shape("rect", { x: from + 0.75, width: Math.max(1, to - from - 1.5), y: y(n), height: bottom - y(n), fill: t0 + k * step < 0 ? "var(--bad)" : "var(--run)", rx: 1.5 });
    bar.append(shape("title", {}, `${n.toLocaleString("en")} tasks: ${duration(t0 + k * step)} to ${duration(t0 + (k + 1) * step)}`));
    svg.append(bar);
  });
  for (const tick of timeTicks(t0, t1, 5).ticks) svg.append(shape("text", { x: x(tick), y: bottom + 18, "text-anchor": "middle" }, duration(tick)));
  svg.append(shape("text", { x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, "slack of the tasks that are done"));
  return svg;
}
