/*
 * Loads an HDF5 library while it runs: `late_h5 LIBRARY DIR FILES`.
 *
 * When DIR/wait exists it writes its number to DIR/pid, and goes on when DIR/go exists. Then it loads LIBRARY with dlopen(3) and
 * makes the files DIR/0.h5, DIR/1.h5, ... with nothing in between: an H5Fcreate and an H5Fclose each.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* hid_t and herr_t of HDF5 1.10 and later. */
typedef int64_t create_fn(const char *name, unsigned flags, int64_t creation, int64_t access);
typedef int close_fn(int64_t file);

static const char *in(const char *dir, const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void await_go(const char *dir)
{
	const struct timespec pause = {0, 1000 * 1000};
	char text[32];
	int length = snprintf(text, sizeof(text), "%d", getpid());
	int fd = open(in(dir, "pid"), O_WRONLY | O_CREAT | O_EXCL, 0644);

	if (fd < 0 || write(fd, text, (size_t)length) != length || close(fd))
		_exit(1);
	while (access(in(dir, "go"), F_OK))
		nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	char name[32];

	if (argc != 4)
		return 2;
	if (!access(in(argv[2], "wait"), F_OK))
		await_go(argv[2]);
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	create_fn *create = (create_fn *)dlsym(library, "H5Fcreate");
	close_fn *end = (close_fn *)dlsym(library, "H5Fclose");
	if (!create || !end)
		return 1;
	for (int i = 0; i < atoi(argv[3]); i++) {
		snprintf(name, sizeof(name), "%d.h5", i);
		/* H5F_ACC_TRUNC, H5P_DEFAULT */
		int64_t file = create(in(argv[2], name), 2, 0, 0);
		if (file < 0 || end(file) < 0)
			return 1;
	}
	return 0;
}
