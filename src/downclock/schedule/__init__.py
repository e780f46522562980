"""AN ANSWER AND ITS JUDGES: the schedule, verify and account."""
