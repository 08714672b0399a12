#!/bin/sh
# Prolog of Slurm (slurm.conf: Prolog=/etc/slurm/iotrace-prolog.sh, PrologFlags=Contain): sums up the I/O of each job on
# this node, in JOBS/JOB/NODE. It needs control groups of version 2 (cgroup.conf: CgroupPlugin=cgroup/v2), and never
# fails: a Prolog that fails drains the node.
JOBS=${IOTRACE_JOBS:-/var/lib/iotrace-jobs}
RUN=${IOTRACE_RUN:-/run/iotrace-jobs}
CGROUPS=${IOTRACE_CGROUPS:-/sys/fs/cgroup/system.slice/slurmstepd.scope}
TRACER=${IOTRACE_TRACER:-/usr/bin/iotrace-bpf}

[ -n "$SLURM_JOB_ID" ] && [ -x "$TRACER" ] || exit 0
mkdir -p -m 0700 "$RUN" && mkdir -p -m 0755 "$JOBS/$SLURM_JOB_ID" || exit 0
# Root's until the Epilog gives it away: nobody else may write where root does. A job that is requeued has a new one.
first=$JOBS/$SLURM_JOB_ID/$(uname -n)
dir=$first
n=0
until mkdir -m 0700 "$dir" 2>/dev/null; do
	n=$((n + 1))
	[ -d "$dir" ] && [ "$n" -le 100 ] || exit 0
	dir=$first.$n
done

# Slurm makes the job's control group after the Prolog, waits until nobody has the Prolog's output open, and kills what is
# left of its process group: the Prolog ends when the tracer's process is in a session of its own.
export RUN CGROUPS TRACER
rm -f "$RUN/$SLURM_JOB_ID"
setsid sh -c '
	printf "%s\n%s\n" "$$" "$0" >"$RUN/.$SLURM_JOB_ID" && mv "$RUN/.$SLURM_JOB_ID" "$RUN/$SLURM_JOB_ID" || exit 0
	n=0
	until [ -d "$CGROUPS/job_$SLURM_JOB_ID" ]; do
		n=$((n + 1))
		[ "$n" -le 300 ] || { rm -f "$RUN/$SLURM_JOB_ID"; exit 0; }
		sleep 0.1
	done
	exec "$TRACER" --no-tui --quiet --aggregate --cgroup "$CGROUPS/job_$SLURM_JOB_ID" -o "$0/sums.iotrace"
' "$dir" </dev/null >"$dir/log" 2>&1 &
n=0
until [ -e "$RUN/$SLURM_JOB_ID" ] || [ "$n" -ge 100 ]; do
	n=$((n + 1))
	sleep 0.05
done
exit 0
