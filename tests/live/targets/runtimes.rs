//! Containers of podman and docker: processes in them have the names that the runtimes have for them.

use crate::common::live;
use crate::common::ways;
use iotrace_bpf::rows::Process;
use std::collections::BTreeSet;
use std::path::Path;

/// Starts a container and waits for its end; its image, name and id as the runtime has them are the first line of the output.
/// Limits of its own: by default runtimes raise them above those of the caller.
const RUN: &str = r#"
tar -C "$ROOT" -c . | $RUNTIME import - $IMAGE >/dev/null
id=$($RUNTIME run -d --name $NAME --network none --ulimit nofile=1024:1024 $MORE $IMAGE /bin/std_io /data 50)
$RUNTIME wait $id >/dev/null
$RUNTIME inspect -f "$SHOWN" $id
$RUNTIME rm $id >/dev/null
$RUNTIME rmi $IMAGE >/dev/null
"#;

/// Docker's containers are children of its daemon, which the script starts for itself.
const DAEMON: &str = r"
dockerd --iptables=false --bridge=none --exec-root $WORK/exec --pidfile $WORK/pid -H $DOCKER_HOST 2>$WORK/log &
trap 'kill $!; wait $!' EXIT
until docker info >/dev/null 2>&1; do kill -0 $! || { cat $WORK/log >&2; exit 1; }; sleep 0.1; done
";

/// Runs a container of this runtime under a tracer: the processes of the program in it are known by what the runtime shows.
fn named_by(runtime: &str, command: &str, more: &str, shown: &str, before: &str) {
    let work = live::scratch();
    let root = work.path().join("root");
    ways::image(&root, "std_io");
    let own = std::process::id();
    let set = [
        ("ROOT", root.to_str().unwrap()),
        ("WORK", work.path().to_str().unwrap()),
        ("DOCKER_HOST", &format!("unix://{}/socket", work.path().display())),
        ("RUNTIME", command),
        ("MORE", more),
        ("SHOWN", shown),
        ("IMAGE", &format!("localhost/iotrace-test-{own}:1")),
        ("NAME", &format!("iotrace-test-{own}")),
    ];
    let set = set.iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect::<Vec<_>>().concat();
    let script = format!("set -e\n{set}{before}{RUN}");
    let traced = live::trace(work.path(), &["--layers", "syscall"], &["sh", "-c", &script]);
    let words: Vec<&str> = traced.stdout.lines().next().unwrap_or_default().split_whitespace().collect();
    let &[name, image, id] = words.as_slice() else { panic!("{}\n{}", traced.stdout, traced.stderr) };
    let (name, container) = (name.trim_start_matches('/'), format!("{runtime}://{id}"));

    let data = traced.data();
    let ours: Vec<&Process> = data.processes.values().filter(|p| p.exe.as_deref() == Some("/bin/std_io")).collect();
    assert!(!ours.is_empty(), "{:?}", data.processes);
    for process in &ours {
        let facts = [&process.container, &process.container_name, &process.container_image].map(|text| text.as_deref());
        assert_eq!(facts, [Some(&*container), Some(name), Some(image)], "{process:?}");
    }
    // What the program did in it is there, by paths of its own.
    let paths: BTreeSet<&Path> = data
        .calls("write")
        .filter(|span| ours.iter().any(|process| process.process_ix == span.process_ix))
        .filter_map(|span| data.path(span))
        .collect();
    assert!(paths.iter().any(|path| path.starts_with("/data")), "{paths:?}");
    // The runtime itself is in no container.
    let outside = data.processes.values().find(|p| p.cmdline.first().is_some_and(|arg| arg == "tar")).unwrap();
    assert_eq!([&outside.container, &outside.container_name, &outside.container_image], [&None, &None, &None]);
}

#[test]
fn a_container_of_podman_has_its_name_and_image() {
    let shown = "{{.Name}} {{.ImageName}} {{.Id}}";
    // Without systemd, and with the runtime that takes both versions of control groups beside each other.
    let command = "podman --runtime runc --cgroup-manager cgroupfs";
    named_by("podman", command, "--ulimit nproc=1024:1024", shown, "");
}

#[test]
fn a_container_of_docker_has_its_name_and_image() {
    named_by("docker", "docker", "", "{{.Name}} {{.Config.Image}} {{.Id}}", DAEMON);
}
