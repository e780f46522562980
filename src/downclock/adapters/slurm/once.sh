#!/bin/sh
# A batch script runs once, though Slurm's controller is killed: TaskProlog and TaskEpilog of
# slurm.conf both name this file.
#
# A controller that is killed forgets what it has known for less than five seconds. So a script
# begins only when its start is saved: none is cut, and none ends, of whose start nobody knows. And
# its end is written down before the controller hears of it: where a controller that was started
# since launches the job again, the job is requeued and held until its owner releases it. Until it
# begins a word says that it waits: the planner has a job run that failed before that.

FOLDER=/var/lib/downclock/spool/once # in the spool of all nodes and the planner, of mode 1777
SAVED_S=6                            # a controller has saved by then what it was told
CLOCKS_S=2                           # clocks of nodes and of the controller differ by less

export PATH=/usr/bin:/bin SLURM_TIME_FORMAT=%s
job=$SLURM_JOB_ID
word=$FOLDER/$job
[ -z "$SLURM_ARRAY_TASK_ID" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID

of_job() { # a field of its record; empty: nobody answers
   scontrol show job -o "$job" 2>/dev/null | tr ' ' '\n' | sed -n "s/^$1=//p" | tail -n 1
}

boot_s() { scontrol show config 2>/dev/null | sed -n 's/^BOOT_TIME *= *//p'; }

told() { # the first answer that is none of nobody
   until answer=$("$@") && [ -n "$answer" ]; do sleep 1; done
   echo "$answer"
}

saves() { # a change that changes nothing has all saved, if the site lets owners change anything
   refused=0
   until scontrol update "JobId=$job" "Requeue=$(of_job Requeue)" >/dev/null 2>&1 ||
      [ "$refused" -ge 5 ]; do
      [ -z "$(of_job Requeue)" ] || refused=$((refused + 1))
      sleep 1
   done
   sleep "$SAVED_S"
}

ran() { # its script ended, or it was held for that, and the controller was started since
   [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && [ -O "$word.ended" ] &&
      [ "$(told boot_s)" -gt $(($(stat -c %Y "$word.ended") - CLOCKS_S)) ]
}

keeps() { # whoever releases it has it run again; it fails where it cannot be held
   echo held >>"$word.ended"
   tries=0
   while [ "$tries" -lt 60 ]; do # until Slurm ends this
      scontrol requeuehold "$job" >/dev/null 2>&1
      tries=$((tries + 1))
      sleep 2
   done
   exit 1
}

begins() {
   ! ran || keeps
   touch "$word.waits" && rm -f "$word.begun"
   start=$(told of_job StartTime)
   saves
   until [ "$(of_job JobState) $(of_job BatchHost)" = "RUNNING $SLURMD_NODENAME" ] &&
      [ "$(of_job StartTime)" = "$start" ]; do
      sleep 1 # its start was forgotten: Slurm ends it, and starts it anew
   done
   rm -f "$word.ended"
   date +%s.%N >"$word.waits" && mv "$word.waits" "$word.begun"
}

ends() { # by itself; what the controller ends it may start again
   [ -O "$word.begun" ] || return
   case $(of_job JobState) in
   RUNNING | "") touch "$word.begun" && sync "$word.begun" && mv "$word.begun" "$word.ended" ;;
   *) rm -f "$word.begun" ;;
   esac
}

if [ -z "$SLURM_STEP_ID" ] && [ -d "$FOLDER" ]; then # not for steps of a script
   case $SLURM_SCRIPT_CONTEXT in
   prolog_task) begins ;;
   epilog_task) ends ;;
   esac
fi
exit 0
