// The table of tasks: searched and sorted as a whole, drawn only where it is seen.

const ROW = 30;

function tableColumns(model) {
  const step = model.last_s > 7200 ? 60 : 1;
  const when = (column) => (task) => (Number.isFinite(column[task]) ? instant(model, column[task], step) : "–");
  const kind = (task) => model.processor_kind[model.task_where[task]];
  const columns = [
    { name: "Task", wide: 150, text: true, say: (t) => model.task_names[t], key: model.task_names },
    { name: "Application", wide: 138, text: true, say: (t) => model.application_names[model.task_application[t]], key: (t) => model.application_names[model.task_application[t]] },
    { name: "Outcome", wide: 84, text: true, say: (t) => model.statuses[model.task_status[t]], key: model.task_status },
    { name: "Processor", wide: 88, text: true, say: (t) => (model.task_where[t] < 0 ? "–" : processorText(model, model.task_where[t])), key: model.task_where },
    { name: "Arrival", wide: 100, say: when(model.task_arrival), key: model.task_arrival },
    { name: "Start", wide: 100, say: when(model.task_start), key: model.task_start },
    { name: "End", wide: 100, say: when(model.task_end), key: model.task_end },
    { name: "Deadline", wide: 100, say: when(model.task_deadline), key: model.task_deadline },
    { name: "Slack", wide: 92, say: (t) => (!Number.isFinite(model.task_slack[t]) ? "–" : duration(model.task_slack[t])), key: model.task_slack },
    { name: "Core clock", wide: 96, say: (t) => (model.task_where[t] < 0 ? "–" : coreText(model, kind(t), model.task_clock[t])), key: model.task_clock },
    { name: "Energy", wide: 84, say: (t) => withPrefix(model.task_joules[t], "J"), key: model.task_joules },
  ];
  if (Object.keys(model.reasons).length)
    columns.push({ name: "Why", wide: 420, text: true, say: (t) => model.reasons[t] ?? "", key: (t) => model.reasons[t] ?? "" });
  return columns;
}

class TaskTable {
  constructor(model, scroller, table, found, onPick) {
    Object.assign(this, { model, scroller, table, found, onPick, chosen: -1, sorted: 0, up: true, query: "", status: "" });
    this.columns = tableColumns(model);
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

  head() {
    const row = document.createElement("tr");
    this.columns.forEach((column, k) => {
      const cell = document.createElement("th"), button = document.createElement("button");
      cell.scope = "col";
      cell.style.width = `${column.wide}px`;
      if (column.text) cell.className = "text";
      button.type = "button";
      button.addEventListener("click", () => this.sort(k));
      cell.append(button);
      row.append(cell);
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
    const line = document.createElement("tr"), cell = document.createElement("td");
    line.className = "gap";
    line.setAttribute("aria-hidden", "true");
    cell.colSpan = this.columns.length;
    cell.style.height = `${rows * ROW}px`;
    line.append(cell);
    return line;
  }

  row(task, place) {
    const line = document.createElement("tr");
    line.className = task === this.chosen ? "row chosen" : "row";
    line.dataset.task = task;
    line.tabIndex = 0;
    line.setAttribute("aria-rowindex", String(place + 2));
    for (const column of this.columns) {
      const cell = document.createElement("td");
      cell.textContent = column.say(task);
      if (column.text) { cell.className = "text"; cell.title = cell.textContent; }
      line.append(cell);
    }
    return line;
  }

  choose(task) {
    this.chosen = task;
    this.draw();
  }

  search(query) { this.query = query; this.filter(); }

  only(status) { this.status = status; this.filter(); }
}
