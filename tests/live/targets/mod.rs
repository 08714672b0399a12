//! What can be traced: programs in every language, containers, services, whole machines.

mod attach;
mod cgroup;
mod detach;
mod launch;
mod pid_namespace;
mod runtimes;
mod system;
mod ways_containers;
mod ways_languages;
mod ways_libraries;
mod ways_middle;
mod ways_processes;
