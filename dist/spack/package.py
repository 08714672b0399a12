# A recipe for Spack: copy it to packages/iotrace-bpf/package.py of a repository (`spack repo create`).
from spack.package import *


class IotraceBpf(CargoPackage):
    """Traces the I/O of unmodified programs through every layer at once, with eBPF."""

    homepage = "https://github.com/iotrace-bpf/iotrace-bpf"
    git = "https://github.com/iotrace-bpf/iotrace-bpf.git"

    license("(MIT OR Apache-2.0) AND GPL-2.0-only")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    # Compiles the programs for the kernel.
    depends_on("llvm@14: +clang targets=bpf", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("elfutils")
    depends_on("zlib-api")

    requires("platform=linux", "target=x86_64:")

    def setup_run_environment(self, env):
        env.prepend_path("MANPATH", self.prefix.share.man)

    @run_after("install")
    def install_manual_and_completions(self):
        program = Executable(self.prefix.bin.join("iotrace-bpf"))
        program("man", self.prefix.share.man.man1)
        for shell, path in [
            ("bash", "bash-completion/completions/iotrace-bpf"),
            ("fish", "fish/vendor_completions.d/iotrace-bpf.fish"),
            ("zsh", "zsh/site-functions/_iotrace-bpf"),
        ]:
            target = join_path(self.prefix.share, path)
            mkdirp(ancestor(target))
            with open(target, "w") as file:
                program("completions", shell, output=file)
