//! What the path of a control group names: its container, its systemd unit, its job.

/// The container, unit and job that the path of a control group names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CgroupIds {
    /// `RUNTIME://ID`, as Kubernetes writes it.
    pub container: Option<String>,
    pub unit: Option<String>,
    pub job: Option<String>,
    pub step: Option<String>,
}

/// What runtimes call the group of a container when systemd makes it: this, its id, `.scope`.
const SCOPES: &[(&str, &str)] =
    &[("docker-", "docker"), ("libpod-", "podman"), ("crio-", "cri-o"), ("cri-containerd-", "containerd")];

/// What the group is called that holds those of a runtime's containers when the runtime makes them itself. Of Kubernetes the
/// runtime is not known then.
const PARENTS: &[(&str, &str)] = &[("docker", "docker"), ("libpod_parent", "podman"), ("kubepods", "kubernetes")];

/// What LXC puts before the name of a container, and behind its monitor's.
const LXC: &[&str] = &["lxc.payload.", "lxc.payload/", "lxc/"];

/// Suffixes of systemd's units that processes are in; slices only group them.
const UNITS: &[&str] = &[".service", ".scope", ".socket", ".mount", ".swap"];

/// The ids in the path of a control group, from the root of its hierarchy.
pub fn of(path: &str) -> CgroupIds {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (job, step) = slurm(&parts).or_else(|| pbs(&parts)).unwrap_or_default();
    // The innermost one: a container may run systemd, or other containers.
    let unit = parts.iter().rev().find(|part| UNITS.iter().any(|suffix| part.ends_with(suffix)));
    CgroupIds { container: container(path, &parts), unit: unit.map(|unit| (*unit).to_owned()), job, step }
}

/// Ids of containers are 64 hexadecimal digits.
fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn container(path: &str, parts: &[&str]) -> Option<String> {
    let named = |runtime: &str, id: &str| format!("{runtime}://{id}");
    for (at, part) in parts.iter().enumerate().rev() {
        let scope = part.strip_suffix(".scope");
        let made = SCOPES.iter().find_map(|(prefix, runtime)| Some((*runtime, scope?.strip_prefix(prefix)?)));
        if let Some((runtime, id)) = made.filter(|(_, id)| is_id(id)) {
            return Some(named(runtime, id));
        }
        // In the group of a unit of systemd (Quadlet, `--cgroups=split`).
        if let Some(id) = part.strip_prefix("libpod-payload-").filter(|id| is_id(id)) {
            return Some(named("podman", id));
        }
        let id = part.strip_prefix("libpod-").unwrap_or(part);
        if is_id(id) {
            let holds = |(parent, _): &&(&str, &str)| parts[..at].iter().any(|part| part.starts_with(parent));
            return PARENTS.iter().find(holds).map(|(_, runtime)| named(runtime, id));
        }
    }
    let name = |prefix: &&str| path.trim_start_matches('/').strip_prefix(prefix)?.split('/').next();
    LXC.iter().find_map(name).filter(|name| !name.is_empty()).map(|name| named("lxc", name))
}

/// Slurm: `.../slurmstepd.scope/job_7/step_0/...` (cgroup/v2), `/slurm/uid_1000/job_7/step_batch/...` (cgroup/v1).
fn slurm(parts: &[&str]) -> Option<(Option<String>, Option<String>)> {
    let below = parts.iter().position(|part| part.starts_with("slurm"))?;
    let after = |prefix| parts[below..].iter().find_map(|part| part.strip_prefix(prefix)).map(str::to_owned);
    let job = after("job_")?;
    Some((Some(job), after("step_")))
}

/// `OpenPBS`: `.../pbs_jobs.service/jobid/7.server/...`.
fn pbs(parts: &[&str]) -> Option<(Option<String>, Option<String>)> {
    let below = parts.iter().position(|part| part.starts_with("pbs"))?;
    let job = parts[below..].iter().skip_while(|part| **part != "jobid").nth(1)?;
    Some((Some((*job).to_owned()), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4d1f9bb0f24fdb2d6d07b2ee1b5a6b5ad21ca6a6ee1c44f0a6b1f1a3e43ab0c1";

    fn ids(path: &str) -> [Option<String>; 4] {
        let ids = of(&path.replace("ID", ID));
        [ids.container, ids.unit, ids.job, ids.step]
    }

    #[test]
    fn runtimes_call_their_containers_in_their_own_ways() {
        for (path, runtime) in [
            ("/system.slice/docker-ID.scope", "docker"),
            ("/docker/ID", "docker"),
            ("/docker/ID/system.slice/nginx.service", "docker"),
            ("/machine.slice/libpod-ID.scope/container", "podman"),
            ("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container", "podman"),
            ("/libpod_parent/libpod-ID", "podman"),
            ("/system.slice/web.service/libpod-payload-ID/container", "podman"),
            ("/kubepods.slice/kubepods-pod1.slice/cri-containerd-ID.scope", "containerd"),
            ("/kubepods.slice/kubepods-burstable.slice/crio-ID.scope", "cri-o"),
            ("/kubepods/besteffort/pod8a1b/ID", "kubernetes"),
        ] {
            assert_eq!(ids(path)[0], Some(format!("{runtime}://{ID}")), "{path}");
        }
        assert_eq!(ids("/lxc.payload.web/system.slice/x.service")[0].as_deref(), Some("lxc://web"));
        assert_eq!(ids("/lxc/web/init.scope")[0].as_deref(), Some("lxc://web"));
        // A monitor of a container is not in it; other names are only names.
        for path in
            ["/machine.slice/libpod-conmon-ID.scope", "/system.slice/docker.service", "/a/docker-1.scope", "/ID"]
        {
            assert_eq!(ids(path)[0], None, "{path}");
        }
    }

    #[test]
    fn the_innermost_unit_counts() {
        for (path, unit) in [
            ("/system.slice/ssh.service", Some("ssh.service")),
            ("/user.slice/user-1000.slice/session-3.scope", Some("session-3.scope")),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.service", Some("app-x.service")),
            ("/system.slice/slurmstepd.scope/job_7/step_0/user/task_1", Some("slurmstepd.scope")),
            ("/init.scope", Some("init.scope")),
            ("/user.slice", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(ids(path)[1].as_deref(), unit, "{path}");
        }
    }

    #[test]
    fn schedulers_call_the_groups_of_jobs() {
        for (path, job, step) in [
            ("/system.slice/slurmstepd.scope/job_7/step_0/user/task_1", Some("7"), Some("0")),
            ("/system.slice/slurmstepd.scope/job_7/step_batch/user/task_0", Some("7"), Some("batch")),
            ("/slurm/uid_1000/job_123/step_extern", Some("123"), Some("extern")),
            ("/pbs_jobs.service/jobid/42.host", Some("42.host"), None),
            ("/system.slice/slurmd.service", None, None),
            ("/a/job_7/step_0", None, None),
        ] {
            let [_, _, found, part] = ids(path);
            assert_eq!((found.as_deref(), part.as_deref()), (job, step), "{path}");
        }
    }
}
