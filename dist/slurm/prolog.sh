#!/bin/sh
# Prolog of Slurm (slurm.conf: Prolog=/etc/slurm/iotrace-prolog.sh, PrologFlags=Contain): sums up the I/O of each job on
# this node, in JOBS/JOB/NODE. It needs control groups of version 2 (cgroup.conf: CgroupPlugin=cgroup/v2), and never
# fails: a Prolog that fails drains the node.
JOBS=${IOTRACE_JOBS:-/var/lib/iotrace-bpf/jobs}
CGROUPS=${IOTRACE_CGROUPS:-/sys/fs/cgroup/system.slice/slurmstepd.scope}
TRACER=${IOTRACE_TRACER:-/usr/bin/iotrace-bpf}

[ -n "$SLURM_JOB_ID" ] && [ -x "$TRACER" ] || exit 0
mkdir -p -m 0711 "$JOBS" || exit 0
dir=$JOBS/$SLURM_JOB_ID
# Root's until the Epilog: nobody else may write where root does.
mkdir -m 0700 "$dir" 2>/dev/null || exit 0

# Slurm makes the job's control group after the Prolog, and waits until nobody has the Prolog's output open.
(
	exec </dev/null >"$dir/log.$(uname -n)" 2>&1
	n=0
	until [ -d "$CGROUPS/job_$SLURM_JOB_ID" ]; do
		n=$((n + 1))
		[ "$n" -le 300 ] || exit 0
		sleep 0.1
	done
	exec "$TRACER" --no-tui --quiet --aggregate --cgroup "$CGROUPS/job_$SLURM_JOB_ID" -o "$dir/$(uname -n)"
) &
echo $! >"$dir/pid.$(uname -n)"
exit 0
