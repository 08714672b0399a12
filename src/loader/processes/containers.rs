//! Names and images of containers, from the files in which their runtimes keep them: no runtime is asked, and none need run.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::{O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK};
use serde_json::Value;

use crate::event::Container;

/// No state of a node's containers is larger.
const MOST_BYTES: u64 = 16 << 20;
/// How often a container without state is looked for: its runtime may write that a moment after the first process starts.
const TRIES: u32 = 8;
/// Names are cut here.
const MOST_CHARACTERS: usize = 256;

/// What has the state of containers.
struct State {
    /// Before `://` in the column `container`.
    runtimes: &'static [&'static str],
    /// Below one of these directories of its own, which settings may change.
    root: Root,
    /// `ID` stands for the container's.
    path: &'static str,
    read: fn(&Value, &str) -> Option<Container>,
}

#[derive(Clone, Copy, PartialEq)]
enum Root {
    Docker,
    /// Of root, and of each user.
    Storage,
    Containerd,
}

/// Of Kubernetes the runtime may not be known.
const STORAGE: &[&str] = &["podman", "cri-o", "kubernetes"];
const STATES: &[State] = &[
    State { runtimes: &["docker"], root: Root::Docker, path: "containers/ID/config.v2.json", read: docker },
    State { runtimes: STORAGE, root: Root::Storage, path: "overlay-containers/containers.json", read: storage },
    State {
        runtimes: STORAGE,
        root: Root::Storage,
        path: "overlay-containers/volatile-containers.json",
        read: storage,
    },
    State { runtimes: STORAGE, root: Root::Storage, path: "vfs-containers/containers.json", read: storage },
    State { runtimes: STORAGE, root: Root::Storage, path: "vfs-containers/volatile-containers.json", read: storage },
    State { runtimes: &["containerd", "kubernetes"], root: Root::Containerd, path: "ID/config.json", read: containerd },
];

/// The state on this node.
pub struct Containers {
    /// `/`, but in tests.
    node: PathBuf,
    /// Who owns it: root, but in tests.
    root: u32,
    known: HashMap<String, (u32, Option<Container>)>,
}

impl Default for Containers {
    fn default() -> Self {
        Self { node: PathBuf::from("/"), root: 0, known: HashMap::new() }
    }
}

impl Containers {
    /// What is known of a container (`RUNTIME://ID`), in a control group of this path.
    pub fn of(&mut self, container: &str, cgroup: &str) -> Option<Container> {
        let known = self.known.get(container);
        if let Some((_, known)) = known.filter(|(tries, known)| known.is_some() || *tries >= TRIES) {
            return known.clone();
        }
        let tries = known.map_or(0, |(tries, _)| *tries) + 1;
        let found = container.split_once("://").and_then(|(runtime, id)| self.find(runtime, id, user(cgroup)));
        self.known.insert(container.to_owned(), (tries, found.clone()));
        found
    }

    fn find(&self, runtime: &str, id: &str, user: Option<u32>) -> Option<Container> {
        STATES.iter().filter(|state| state.runtimes.contains(&runtime)).find_map(|state| {
            self.roots(state.root, user).into_iter().find_map(|(root, owner)| {
                let state_of = json(&root.join(state.path.replace("ID", id)), owner)?;
                (state.read)(&state_of, id)
            })
        })
    }

    /// The directories of a runtime, each with the user who must own what is in it.
    fn roots(&self, root: Root, user: Option<u32>) -> Vec<(PathBuf, u32)> {
        // An absolute path is below the node's root.
        let at = |path: &str| self.node.join(path.trim_start_matches('/'));
        let set = |file: &str| fs::read_to_string(at(file)).unwrap_or_default();
        match root {
            Root::Docker => {
                let settings: Value = serde_json::from_str(&set("etc/docker/daemon.json")).unwrap_or_default();
                vec![(at(settings["data-root"].as_str().unwrap_or("/var/lib/docker")), self.root)]
            }
            Root::Storage => {
                let settings: toml::Table = set("etc/containers/storage.conf").parse().unwrap_or_default();
                let all = settings.get("storage").and_then(|storage| storage.get("graphroot")?.as_str());
                let mut roots = vec![(at(all.unwrap_or("/var/lib/containers/storage")), self.root)];
                if let Some((uid, home)) = user.and_then(|uid| Some((uid, home(&set("etc/passwd"), uid)?))) {
                    roots.push((at(&home).join(".local/share/containers/storage"), uid));
                }
                roots
            }
            Root::Containerd => vec![(at("run/containerd/io.containerd.runtime.v2.task/k8s.io"), self.root)],
        }
    }
}

/// The user whose containers are in a control group: in those of the user's own manager of systemd.
fn user(cgroup: &str) -> Option<u32> {
    let of = |part: &str| part.strip_prefix("user-")?.strip_suffix(".slice")?.parse().ok();
    cgroup.split('/').find_map(of)
}

/// The home directory of a user (passwd(5)).
fn home(passwd: &str, uid: u32) -> Option<String> {
    let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let own = fields.into_iter().find(|fields| fields.get(2).and_then(|number| number.parse().ok()) == Some(uid));
    own.and_then(|fields| fields.get(5).filter(|home| home.starts_with('/')).map(|home| (*home).to_owned()))
}

/// What a file of `owner` has. What another user has put there is not read, nor waited for.
fn json(path: &Path, owner: u32) -> Option<Value> {
    let mut open = OpenOptions::new();
    let file = open.read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC).open(path).ok()?;
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= MOST_BYTES)?;
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text).ok().filter(|_| meta.uid() == owner)?;
    serde_json::from_slice(&text).ok()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(|text| text.chars().take(MOST_CHARACTERS).collect())
}

/// `container.Container` of moby, which calls them `/NAME`.
fn docker(state: &Value, id: &str) -> Option<Container> {
    let name = state["Name"].as_str().map(|name| name.trim_start_matches('/').into());
    let found = Container { name: name.as_ref().and_then(text), image: text(&state["Config"]["Image"]) };
    (state["ID"] == id).then_some(found)
}

/// All containers of containers/storage, with the runtime's own facts as a text of JSON: `RuntimeContainerMetadata` of podman
/// and of CRI-O.
fn storage(state: &Value, id: &str) -> Option<Container> {
    let own = state.as_array()?.iter().find(|one| one["id"] == id)?;
    let facts: Value = own["metadata"].as_str().and_then(|facts| serde_json::from_str(facts).ok()).unwrap_or_default();
    let name = text(&facts["name"]).or_else(|| text(&own["names"][0]));
    Some(Container { name, image: text(&facts["image-name"]).or_else(|| text(&own["image"])) })
}

/// The annotations that containerd's part of Kubernetes gives its containers.
fn containerd(state: &Value, _: &str) -> Option<Container> {
    let of = |what: &str| text(&state["annotations"][format!("io.kubernetes.cri.{what}")]);
    let found = Container { name: of("container-name"), image: of("image-name") };
    (found != Container::default()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const DOCKER: &str = include_str!("../../../tests/fixtures/containers/docker-config.v2.json");
    const PODMAN: &str = include_str!("../../../tests/fixtures/containers/podman-containers.json");
    const OF_DOCKER: &str = "5de73f3701d59907807705db01a15a999c75e8f0eeef9ac536b5a53b0766547a";
    const OF_PODMAN: &str = "76d3669303cfda6273956b810eb6e05f0c39a269bbfdb50ebacc0f872d38c41d";

    struct Node(tempfile::TempDir);

    impl Node {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn file(&self, path: &str, text: &str) -> PathBuf {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        fn containers(&self) -> Containers {
            Containers { node: self.0.path().to_owned(), root: nix::unistd::geteuid().as_raw(), known: HashMap::new() }
        }

        fn of(&self, container: &str, cgroup: &str) -> Option<[String; 2]> {
            let found = self.containers().of(container, cgroup)?;
            Some([found.name.unwrap_or_default(), found.image.unwrap_or_default()])
        }
    }

    fn known(name: &str, image: &str) -> [String; 2] {
        [name.to_owned(), image.to_owned()]
    }

    #[test]
    fn recorded_state_of_both_runtimes_names_containers() {
        let [docker, podman] = [DOCKER, PODMAN].map(|text| serde_json::from_str::<Value>(text).unwrap());
        let shown = |found: Option<Container>| found.map(|it| [it.name.unwrap(), it.image.unwrap()]);
        assert_eq!(shown(super::docker(&docker, OF_DOCKER)), Some(known("dweb", "tiny:1")));
        assert_eq!(shown(storage(&podman, OF_PODMAN)), Some(known("webby", "localhost/tiny:1")));
        assert_eq!(super::docker(&docker, OF_PODMAN), None);
        assert_eq!(storage(&podman, OF_DOCKER), None);
    }

    #[test]
    fn state_is_found_where_settings_have_it() {
        let node = Node::new();
        let (docker, podman) = (format!("docker://{OF_DOCKER}"), format!("podman://{OF_PODMAN}"));
        assert_eq!(node.of(&docker, "/"), None);
        node.file(&format!("var/lib/docker/containers/{OF_DOCKER}/config.v2.json"), DOCKER);
        node.file("var/lib/containers/storage/overlay-containers/containers.json", PODMAN);
        assert_eq!(node.of(&docker, "/"), Some(known("dweb", "tiny:1")));
        assert_eq!(node.of(&podman, "/"), Some(known("webby", "localhost/tiny:1")));
        assert_eq!(node.of(&format!("podman://{OF_DOCKER}"), "/"), None);
        assert_eq!(node.of("lxc://web", "/"), None);

        let node = Node::new();
        node.file("etc/docker/daemon.json", r#"{"data-root": "/srv/docker"}"#);
        node.file("etc/containers/storage.conf", "[storage]\ndriver = \"vfs\"\ngraphroot = \"/srv/storage\"\n");
        node.file(&format!("srv/docker/containers/{OF_DOCKER}/config.v2.json"), DOCKER);
        node.file("srv/storage/vfs-containers/volatile-containers.json", PODMAN);
        assert_eq!(node.of(&docker, "/"), Some(known("dweb", "tiny:1")));
        assert_eq!(node.of(&podman, "/"), Some(known("webby", "localhost/tiny:1")));
    }

    #[test]
    fn a_user_has_containers_of_their_own() {
        let node = Node::new();
        let own = nix::unistd::geteuid().as_raw();
        let passwd = format!("anna:x:{own}:7:Anna:/home/anna:/bin/sh\nbob:x:{}:8::/home/bob:\n", own + 1);
        node.file("etc/passwd", &passwd);
        let podman = format!("podman://{OF_PODMAN}");
        let [hers, his] = [own, own + 1].map(|uid| {
            format!("/user.slice/user-{uid}.slice/user@{uid}.service/user.slice/libpod-{OF_PODMAN}.scope/container")
        });
        let path =
            |user: &str| format!("home/{user}/.local/share/containers/storage/overlay-containers/containers.json");
        let state = node.file(&path("anna"), PODMAN);
        node.file(&path("bob"), PODMAN);
        assert_eq!(node.of(&podman, &hers), Some(known("webby", "localhost/tiny:1")));
        assert_eq!(node.of(&podman, &his), None, "the file is not his");
        assert_eq!(node.of(&podman, "/"), None, "whose it is is not known");
        // A link may lead to what only the tracer can read.
        fs::rename(&state, state.with_extension("old")).unwrap();
        symlink(state.with_extension("old"), &state).unwrap();
        assert_eq!(node.of(&podman, &hers), None);
    }

    #[test]
    fn kubernetes_names_containers_in_annotations() {
        let node = Node::new();
        let config = r#"{"annotations": {"io.kubernetes.cri.container-name": "db", "io.kubernetes.cri.image-name": "docker.io/library/redis:7"}}"#;
        node.file(&format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{OF_DOCKER}/config.json"), config);
        for runtime in ["containerd", "kubernetes"] {
            assert_eq!(
                node.of(&format!("{runtime}://{OF_DOCKER}"), "/"),
                Some(known("db", "docker.io/library/redis:7"))
            );
        }
    }

    #[test]
    fn state_that_comes_late_is_seen_and_what_is_damaged_is_not() {
        let (node, docker) = (Node::new(), format!("docker://{OF_DOCKER}"));
        let mut containers = node.containers();
        assert_eq!(containers.of(&docker, "/"), None);
        let path = format!("var/lib/docker/containers/{OF_DOCKER}/config.v2.json");
        for damaged in ["", "{", "[]", "null", r#"{"ID": 7, "Name": {}}"#] {
            node.file(&path, damaged);
            assert_eq!(containers.of(&docker, "/"), None, "{damaged}");
        }
        node.file(&path, DOCKER);
        assert!(containers.of(&docker, "/").is_some());
        // It is read once.
        fs::remove_file(node.0.path().join(&path)).unwrap();
        assert!(containers.of(&docker, "/").is_some());
    }
}
