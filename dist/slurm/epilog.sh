#!/bin/sh
# Epilog of Slurm (slurm.conf: Epilog=/etc/slurm/iotrace-epilog.sh): ends the trace that the Prolog began, gives it to the
# user of the job, and never fails.
RUN=${IOTRACE_RUN:-/run/iotrace-jobs}
TRACER=${IOTRACE_TRACER:-/usr/bin/iotrace-bpf}

[ -n "$SLURM_JOB_ID" ] && [ -r "$RUN/$SLURM_JOB_ID" ] || exit 0
{ read -r pid && read -r dir; } <"$RUN/$SLURM_JOB_ID" || exit 0
rm -f "$RUN/$SLURM_JOB_ID"

# The number may be another process's by now.
is_tracer() {
	[ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$TRACER")" ]
}
is_tracer && kill -TERM "$pid"
# The tracer completes its dataset.
n=0
while is_tracer && [ "$n" -lt 600 ]; do
	n=$((n + 1))
	sleep 0.1
done
# As long as root writes there, it stays root's.
is_tracer || [ -z "$SLURM_JOB_UID" ] || chown -R -h "$SLURM_JOB_UID" "$dir"
exit 0
