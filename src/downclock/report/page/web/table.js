// The table of tasks: searched and sorted as a whole, drawn only where it is seen.

const ROW = 30;

function tableColumns(model) {
  const step = model.last_s > 7200 ? 60 : 1;
  const when = (column) => (task) => (Number.isFinite(column[task]) ? instant(model, column[task], step) : "–");
  const kind = (task) => model.processor_kind[model.task_where[task]];
  const columns = [
    { name: "Task", text: true, say: (t) => model.task_names[t], key: model.task_names },
    { name: "Application", text: true, say: (t) => model.application_names[model.task_application[t]], key: (t) => model.application_names[model.task_application[t]] },
    { name: "Outcome", text: true, say: (t) => model.statuses[model.task_status[t]], key: model.task_status },
    { name: "Processor", text: true, say: (t) => (model.task_where[t] < 0 ? "–" : processorText(model, model.task_where[t])), key: model.task_where },
    { name: "Arrival", say: when(model.task_arrival), key: model.task_arrival },
    { name: "Start", say: when(model.task_start), key: model.task_start },
    { name: "End", say: when(model.task_end), key: model.task_end },
    { name: "Deadline", say: when(model.task_deadline), key: model.task_deadline },
    { name: "Slack", say: (t) => (!Number.isFinite(model.task_slack[t]) ? "–" : duration(model.task_slack[t])), key: model.task_slack },
    { name: "Core clock", say: (t) => (model.task_where[t] < 0 ? "–" : coreText(model, kind(t), model.task_clock[t])), key: model.task_clock },
    { name: "Energy", say: (t) => withPrefix(model.task_joules[t], "J"), key: model.task_joules },
  ];
  if (Object.keys(model.reasons).length)
    columns.push({ name: "Why", text: true, say: (t) => model.reasons[t] ?? "", key: (t) => model.reasons[t] ?? "" });
  return columns;
}

class TaskTable {
  constructor(model, scroller, table, found, onPick) {
    Object.assign(this, { model, scroller, table, found, onPick, chosen: -1, sorted: 0, up: true, query: "", status: "" });
    this.columns = tableColumns(model);
    this.measure();
    this.body = table.tBodies[0];
    this.order = Uint32Array.from({ length: model.tasks }, (_, t) => t);
    this.head();
    this.filter();
    scroller.addEventListener("scroll", () => this.later());
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("tr.row");
      if (row) onPick(Number(row.dataset.task));
    });
    this.body.addEventListener("keydown", (event) => {
      const row = event.target.closest("tr.row");
      if (row && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); onPick(Number(row.dataset.task)); }
    });
  }

  // Columns as wide as what is in them: nothing is cut where there is room, and scrolled where not.
  measure() {
    const pen = document.createElement("canvas").getContext("2d"), many = Math.min(this.model.tasks, 3000);
    const { fontSize, fontFamily } = getComputedStyle(this.table);
    pen.font = `${fontSize} ${fontFamily}`;
    for (const column of this.columns) {
      let wide = pen.measureText(`${column.name} ↑`).width * 1.1;
      for (let t = 0; t < many; t++) wide = Math.max(wide, pen.measureText(column.say(t)).width);
      column.wide = Math.min(column.name === "Why" ? 420 : 320, Math.ceil(wide) + 24);
    }
  }

  head() {
    const row = document.createElement("tr");
    this.columns.forEach((column, k) => {
      const button = element("button", { type: "button", onclick: () => this.sort(k) });
      const className = column.text ? "text" : "";
      row.append(element("th", { scope: "col", className, style: `width: ${column.wide}px` }, button));
    });
    row.setAttribute("aria-rowindex", "1");
    this.table.tHead.replaceChildren(row);
    this.table.style.minWidth = `${this.columns.reduce((sum, column) => sum + column.wide, 0)}px`;
    this.arrows();
  }

  arrows() {
    [...this.table.tHead.rows[0].cells].forEach((cell, k) => {
      const mine = k === this.sorted;
      cell.firstChild.textContent = this.columns[k].name + (mine ? (this.up ? " ↑" : " ↓") : "");
      cell.setAttribute("aria-sort", mine ? (this.up ? "ascending" : "descending") : "none");
    });
  }

  sort(k) {
    this.up = k === this.sorted ? !this.up : true;
    this.sorted = k;
    const { key } = this.columns[k], read = typeof key === "function" ? key : (t) => key[t];
    const sign = this.up ? 1 : -1;
    const words = new Intl.Collator("en", { numeric: true });
    const compare = typeof read(0) === "string" ? (a, b) => words.compare(read(a), read(b)) : (a, b) => read(a) - read(b);
    const missing = (t) => (Number.isNaN(read(t)) ? 1 : 0);
    this.order.sort((a, b) => missing(a) - missing(b) || sign * (missing(a) ? 0 : compare(a, b)) || a - b);
    this.arrows();
    this.filter();
  }

  filter() {
    const { model } = this, words = this.query.toLowerCase().split(/\s+/).filter(Boolean);
    this.lower ??= model.task_names.map((name, t) => `${name} ${model.application_names[model.task_application[t]]} ${model.reasons[t] ?? ""}`.toLowerCase());
    const status = this.status === "" ? -1 : Number(this.status);
    this.shown = this.order.filter((t) => (status < 0 || model.task_status[t] === status) && words.every((word) => this.lower[t].includes(word)));
    this.table.setAttribute("aria-rowcount", String(this.shown.length + 1));
    const all = this.shown.length === model.tasks;
    this.found.textContent = all ? `${model.tasks.toLocaleString("en")} tasks` : `${this.shown.length.toLocaleString("en")} of ${model.tasks.toLocaleString("en")} tasks`;
    this.scroller.scrollTop = 0;
    this.draw();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  draw(from = Math.floor(this.scroller.scrollTop / ROW) - 8, count = Math.ceil(this.scroller.clientHeight / ROW) + 16) {
    const first = Math.max(0, Math.min(from, this.shown.length)), last = Math.min(this.shown.length, first + count);
    const focused = document.activeElement?.closest?.("tr.row")?.dataset.task;
    const rows = [this.gap(first)];
    for (let k = first; k < last; k++) rows.push(this.row(this.shown[k], k));
    rows.push(this.gap(this.shown.length - last));
    this.body.replaceChildren(...rows);
    if (focused !== undefined) this.body.querySelector(`tr[data-task="${focused}"]`)?.focus({ preventScroll: true });
  }

  gap(rows) {
    const cell = element("td", { colSpan: this.columns.length, style: `height: ${rows * ROW}px` });
    return element("tr", { className: "gap", ariaHidden: "true" }, cell);
  }

  row(task, place) {
    const cells = this.columns.map((column) => {
      const said = column.say(task);
      return element("td", column.text ? { className: "text", title: said } : {}, said);
    });
    const line = element("tr", { className: task === this.chosen ? "row chosen" : "row", tabIndex: 0 }, ...cells);
    line.dataset.task = task;
    line.setAttribute("aria-rowindex", String(place + 2));
    return line;
  }

  choose(task) {
    this.chosen = task;
    this.draw();
  }

  search(query) { this.query = query; this.filter(); }

  only(status) { this.status = status; this.filter(); }
}
