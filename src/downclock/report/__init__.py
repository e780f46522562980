"""What people see: quantities with units, tables, summaries of plans, a text Gantt."""
