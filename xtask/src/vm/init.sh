#!/bin/busybox sh
# The first process of the virtual machine: the host's files read-only under a layer in memory, then the job.
B=/bin/busybox
$B mount -t proc p /proc; $B mount -t sysfs s /sys; $B mount -t devtmpfs d /dev
J=$($B sed -n 's/.* job=\([^ ]*\).*/\1/p' /proc/cmdline)
while read m; do
	case $m in
	# Devices of it are made by configfs.
	null_blk.ko) $B insmod /m/$m nr_devices=0 ;;
	*) $B insmod /m/$m ;;
	esac
done </m/order
$B mount -t virtiofs -o ro root /h || { echo "the host's files are not there"; $B poweroff -f; }
$B mount -t virtiofs job /o
$B mount -t tmpfs t /t; $B mkdir /t/u /t/w
$B mount -t overlay -o lowerdir=/h,upperdir=/t/u,workdir=/t/w o /n
for d in proc sys dev; do $B mount --move /$d /n/$d; done
$B mkdir -p /n$J /n/mnt/ext4 /n/mnt/xfs /n/mnt/null_blk /n/dev/shm /n/dev/pts
$B mount --bind /o /n$J
$B mount -t tmpfs s /n/dev/shm; $B mount -t devpts d /n/dev/pts
$B mount -t tracefs t /n/sys/kernel/tracing; $B mount -t bpf b /n/sys/fs/bpf
$B mount -t securityfs s /n/sys/kernel/security; $B mount -t cgroup2 c /n/sys/fs/cgroup; $B mount -t configfs c /n/sys/kernel/config
$B mount -t ext4 /n/dev/vda /n/mnt/ext4; $B mount -t xfs /n/dev/vdb /n/mnt/xfs
$B ip link set lo up; $B hostname vm
exec $B chroot /n /bin/bash $J/job.sh
