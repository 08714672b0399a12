"""Names paths in every way that fails and succeeds: paths.py DIR. Modules are imported for what they look up themselves."""

import csv, json, os, subprocess, sys, xml.dom  # noqa: F401

os.chdir(sys.argv[1])


def fails(call, *args, **more):
    try:
        call(*args, **more)
    except (OSError, ImportError):
        return
    raise SystemExit(f"{call} {args} did not fail")


os.mkdir("made")
os.mkdir("made/deeper")
fails(os.mkdir, "made")
fails(os.mkdir, "no/such")
there = os.open("made", os.O_RDONLY | os.O_DIRECTORY)
os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=there))
for _ in range(3):
    fails(os.open, "missing", os.O_RDONLY)
    fails(os.open, "./deeper//missing", os.O_RDONLY, dir_fd=there)
    fails(os.stat, "../missing", dir_fd=there)
    fails(os.stat, "made/file/below")
fails(os.open, "missing", os.O_RDONLY, dir_fd=1000)
fails(os.open, "", os.O_RDONLY)
fails(os.open, "made", os.O_WRONLY)
os.stat("made/../made/./file")
os.access("made/missing", os.R_OK)
os.access("made", os.R_OK)
os.symlink("made/file", "link")
fails(os.symlink, "anything", "link")
os.readlink("link")
fails(os.readlink, "made")
os.rename("made/file", "moved")
fails(os.rename, "made/file", "moved")
os.link("moved", "other", src_dir_fd=None)
os.rename("other", "made/other", dst_dir_fd=None)
os.rename("other", "again", src_dir_fd=there, dst_dir_fd=there)
fails(os.unlink, "made")
fails(os.rmdir, "made")
os.unlink("moved")
os.unlink("again", dir_fd=there)
os.chmod("made", 0o700)
os.truncate(os.open("cut", os.O_CREAT | os.O_RDWR), 10)
os.truncate("cut", 5)
os.utime("cut")
os.statvfs("made")
fails(os.listxattr, "missing")
fails(__import__, "nosuchmodule")
os.chdir("made/deeper")
fails(os.open, "missing", os.O_RDONLY)
subprocess.run(["true"], env={"PATH": "/nowhere:/usr/bin"}, check=True)
fails(os.execv, "/nowhere/program", ["program"])
os.execv(sys.executable, [sys.executable, "-I", "-S", "-B", "-c", "pass"])
