/* Runs a command under the programs of floor.bpf.c: `floor OBJECT COMMAND...`. Ends with its exit status. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed(const char *what)
{
	perror(what);
	return 125;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	struct bpf_program *program;
	int go[2], status, zero = 0;
	char byte = 0;
	pid_t pid;

	if (argc < 3)
		return 125;
	object = bpf_object__open(argv[1]);
	if (!object || bpf_object__load(object))
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
			execv(argv[2], argv + 2);
		_exit(125);
	}
	if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "target"), &zero, &pid, BPF_ANY))
		return failed("target");
	bpf_object__for_each_program(program, object) if (!bpf_program__attach(program)) return failed(
		bpf_program__name(program));
	if (write(go[1], &byte, 1) != 1 || waitpid(pid, &status, 0) != pid)
		return failed(argv[2]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
