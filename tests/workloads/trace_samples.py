"""A small sound trace of every format, made for the tests."""

from __future__ import annotations

import json
from typing import Any

PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:00:00,3600.0,1,3600.0,vc1
2017-10-09 07:30:00,1800.0,4,7200.0,vc1
2017-10-09 08:00:00,600.0,12,7200.0,vc2
"""

CHRONUS = """\
job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,\
expect_value_list,best_effort,job_type
7,vc_a,2,100,50,vgg16,1000,8,2500,10,0,strict
8,vc_b,1,160,60,alexnet,500,8,800,10,0,strict
"""

PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
scheduled_time
a,4000,1024,1,500,,LS,Running,0,1000,0
b,4000,1024,1,400,,LS,Running,100,1500,200
c,4000,1024,1,300,,LS,Running,300,900,300
d,4000,1024,2,1000,V100M16|V100M32,LS,Succeeded,400,1400,500
e,4000,1024,0,0,,LS,Running,0,50,0
f,4000,1024,1,1000,,LS,Pending,0,50,
"""

NODES = """\
sn,cpu_milli,memory_mib,gpu,model
n0,64000,1,2,V100M16
n1,64000,1,2,V100M16
n2,64000,1,4,T4
n3,64000,1,0,
"""

EAGLE = """\
job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,\
submit_time,start_time,end_time,run_time,state,name,work_dir,submit_line
1,u,a,p,normal,7200.0,1,36,2,0.0,2019-01-01 08:00:00,2019-01-01 08:10:00,2019-01-01 09:10:00,\
3600.0,COMPLETED,n,w,s
2,u,a,p,normal,7200.0,2,72,0,0.0,2019-01-01 08:00:00,2019-01-01 08:10:00,2019-01-01 08:20:00,\
600.0,FAILED,n,w,s
2,u,a,p,normal,7200.0,2,72,4,0.0,2019-01-01 08:00:00,2019-01-01 08:10:00,2019-01-01 08:20:00,\
600.0,COMPLETED,n,w,s
"""

HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration
j1,u,v,8,64,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:01:00,2020-04-01 01:01:00,3600
j2,u,v,16,64,2,FAILED,2020-04-01 00:02:00,2020-04-01 00:02:30,2020-04-01 00:12:30,600
"""

SACCT = """\
JobID|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|NNodes|AllocCPUS|Partition|NodeList|State
11|2026-01-05T08:00:00|2026-01-05T08:05:00|2026-01-05T09:05:00|3600|120|\
billing=8,cpu=8,gres/gpu:v100=2,gres/gpu=2,mem=1G,node=1|1|8|batch|gpu1|COMPLETED
11.batch|2026-01-05T08:05:00|2026-01-05T08:05:00|2026-01-05T09:05:00|3600||cpu=8|1|8||gpu1|COMPLETED
12_3|2026-01-05T08:01:00|2026-01-05T08:10:00|2026-01-05T08:40:00|1800|UNLIMITED|\
cpu=8,gres/gpu=4,node=2|2|8|batch|gpu[1-2]|FAILED
13|2026-01-05T08:02:00|Unknown|Unknown|0|60||0|0|batch|None assigned|CANCELLED by 7
14|2026-01-05T08:03:00|2026-01-05T08:20:00|Unknown|99|60|cpu=1,gres/gpu=1|1|1|batch|gpu2|RUNNING
"""

RECORDS = """\
JobId=11 JobName=my job UserId=u(7) JobState=COMPLETED RunTime=01:00:00 TimeLimit=02:00:00 \
SubmitTime=2026-01-05T08:00:00 StartTime=2026-01-05T08:05:00 EndTime=2026-01-05T09:05:00 \
Partition=batch ReqNodeList=(null) NodeList=gpu1 NumNodes=1 NumCPUs=8 TRES=cpu=8,node=1,billing=8 \
JOB_GRES=gpu:v100:2   Nodes=gpu1 CPU_IDs=0-7 Mem=0 GRES= WorkDir=/home/u TresPerNode=gres:gpu:2
JobId=12 UserId=u(7) GroupId=u(7) Name=n JobState=FAILED Partition=batch TimeLimit=UNLIMITED \
StartTime=2026-01-05T08:10:00 EndTime=2026-01-05T08:40:00 NodeList=gpu[1-2] NodeCnt=2 ProcCnt=8 \
WorkDir=/home/u ReservationName= Tres=cpu=8,node=2,gres/gpu=4 Account= QOS= WcKey= \
Cluster=unknown SubmitTime=2026-01-05T08:01:00 EligibleTime=2026-01-05T08:01:00 ExitCode=1:0
JobId=13 JobName=n JobState=PENDING TimeLimit=01:00:00 SubmitTime=2026-01-05T08:02:00 \
StartTime=2026-01-06T08:00:00 EndTime=2026-01-06T09:00:00 Partition=batch NodeList=(null) \
NumNodes=1 NumCPUs=8 TRES=cpu=8,node=1
JobId=14 JobName=n JobState=RUNNING TimeLimit=01:00:00 SubmitTime=2026-01-05T08:03:00 \
StartTime=2026-01-05T08:20:00 EndTime=2026-01-05T09:20:00 Partition=batch NodeList=gpu2 \
NumNodes=1 NumCPUs=1 TRES=cpu=1,node=1 JOB_GRES=gpu:v100:1
"""


def sacct_json(version: str) -> dict[str, Any]:
    """What ``sacct --json`` of Slurm 22.05 or 24.11 has of these jobs."""
    new = version == "24.11"

    def number(value: int) -> Any:
        return {"set": True, "infinite": False, "number": value} if new else value

    def job(name: int, submit: int, start: int, end: int, gpus: int, nodes: str) -> dict[str, Any]:
        allocated = [
            {"type": "cpu", "name": "" if new else None, "id": 1, "count": 8},
            {"type": "node", "name": "" if new else None, "id": 4, "count": 1},
            {"type": "gres", "name": "gpu", "id": 1001, "count": gpus},
        ]
        return {
            "job_id": name,
            "partition": "batch",
            "nodes": nodes,
            "allocation_nodes": 1,
            "state": {"current": ["COMPLETED"] if new else "COMPLETED", "reason": "None"},
            "time": {
                **{"submission": submit, "start": start, "end": end},
                **{"elapsed": end - start if end else 0, "limit": number(120)},
            },
            "tres": {"allocated": allocated if start else [], "requested": []},
            "steps": [],
        }

    began = 1767600000
    return {
        "meta": {"Slurm": {"version": version}},
        "jobs": [
            job(11, began, began + 300, began + 3900, 2, "gpu1"),
            job(12, began + 60, began + 600, began + 2400, 4, "gpu[1-2]"),
            job(13, began + 120, 0, 0, 0, "None assigned"),
        ],
    }


SWF = """\
; Version: 2.2
; UnixStartTime: 1027839845
; MaxProcs: 16
    1        0     10   1000    4   1000    -1    8   2000    -1  1   1   1  -1  1  1 -1 -1
    2       60     -1    500   -1    500    -1    2     -1    -1  1   1   1  -1 -1  1 -1 -1
    3      120      0     -1    1     -1    -1    1   2000    -1  5   1   1  -1 -1  1 -1 -1
"""

BATSIM: dict[str, Any] = {
    "nb_res": 8,
    "jobs": [
        {"id": "w!1", "subtime": 0, "walltime": 100, "res": 4, "profile": "short"},
        {"id": "w!2", "subtime": 10.5, "walltime": -1, "res": 2, "profile": "long"},
        {"id": "w!3", "subtime": 11, "walltime": 50, "res": 1, "profile": "parallel"},
    ],
    "profiles": {
        "short": {"type": "delay", "delay": 60},
        "long": {"type": "delay", "delay": 600},
        "parallel": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6},
    },
}

MAPPED = "who;when;mins;n\na;1767600000000;60;2\nb;1767600600000;10;1\n"

MAPPING = """\
delimiter = ";"

[columns]
name = "who"
submit = { column = "when", as = "unix-milliseconds" }
run = { column = "mins", as = "minutes" }
gpus = "n"
"""

FILES: dict[str, str] = {
    "philly.csv": PHILLY,
    "chronus.csv": CHRONUS,
    "pods.csv": PODS,
    "eagle.csv": EAGLE,
    "helios.csv": HELIOS,
    "sacct.txt": SACCT,
    "sacct-22.json": json.dumps(sacct_json("22.05")),
    "sacct-24.json": json.dumps(sacct_json("24.11")),
    "records.txt": RECORDS,
    "log.swf": SWF,
    "batsim.json": json.dumps(BATSIM),
}
"""Every format that needs no mapping, by a name of a file."""
