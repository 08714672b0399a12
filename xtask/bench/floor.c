/*
 * Runs a command under those programs of floor.bpf.c that serve the layers: `floor OBJECT LAYERS it|other COMMAND...`.
 * `other`: they wait for another process. Ends with the command's exit status.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed(const char *what)
{
	perror(what);
	return 125;
}

static int serves(const struct bpf_program *program, const char *layers)
{
	const char *name = bpf_program__name(program), *end = strchr(name, '_');
	char layer[32];

	snprintf(layer, sizeof(layer), "%.*s", (int)(end - name), name);
	return strstr(layers, layer) != NULL;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	struct bpf_program *program;
	int go[2], status, zero = 0;
	char byte = 0;
	pid_t pid, target;

	if (argc < 5)
		return 125;
	object = bpf_object__open(argv[1]);
	if (!object)
		return failed(argv[1]);
	bpf_object__for_each_program(program, object) bpf_program__set_autoload(program, serves(program, argv[2]));
	if (bpf_object__load(object))
		return failed(argv[1]);
	if (pipe(go))
		return failed("pipe");
	pid = fork();
	if (pid < 0)
		return failed("fork");
	if (pid == 0) {
		close(go[1]);
		/* until it is known by its number */
		if (read(go[0], &byte, 1) == 1)
			execv(argv[4], argv + 4);
		_exit(125);
	}
	target = strcmp(argv[3], "it") ? getpid() : pid;
	if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "target"), &zero, &target, BPF_ANY))
		return failed("target");
	bpf_object__for_each_program(
		program, object) if (bpf_program__autoload(program) &&
				     !bpf_program__attach(program)) return failed(bpf_program__name(program));
	if (write(go[1], &byte, 1) != 1 || waitpid(pid, &status, 0) != pid)
		return failed(argv[4]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
