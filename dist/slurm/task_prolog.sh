#!/bin/sh
# TaskProlog of Slurm (slurm.conf: TaskProlog=/etc/slurm/iotrace-task-prolog.sh): what it prints sets the environment of
# each task. Users find the sums of their job there when it is over.
JOBS=${IOTRACE_JOBS:-/var/lib/iotrace-jobs}

[ -d "$JOBS/$SLURM_JOB_ID" ] && echo "export IOTRACE_DATASET=$JOBS/$SLURM_JOB_ID"
exit 0
