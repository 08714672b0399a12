#!/bin/sh
# Epilog of Slurm (slurm.conf: Epilog=/etc/slurm/iotrace-epilog.sh): ends the trace that the Prolog began, gives it to the
# user of the job, and never fails.
JOBS=${IOTRACE_JOBS:-/var/lib/iotrace-bpf/jobs}

dir=$JOBS/$SLURM_JOB_ID
pid_file=$dir/pid.$(uname -n)
[ -n "$SLURM_JOB_ID" ] && [ -r "$pid_file" ] || exit 0
pid=$(cat "$pid_file")
kill -TERM "$pid" 2>/dev/null
# The tracer completes its dataset.
n=0
while kill -0 "$pid" 2>/dev/null && [ "$n" -lt 300 ]; do
	n=$((n + 1))
	sleep 0.1
done
rm -f "$pid_file"
[ -z "$SLURM_JOB_UID" ] || chown -R -h "$SLURM_JOB_UID" "$dir"
exit 0
