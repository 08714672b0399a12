// An exception in a callback of the C library: `thrown inside|through DIR`. The callback writes to DIR/out and throws;
// `inside` it catches that itself, `through`: the caller of fwrite does.
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

static const char *how;
static int out;

static void note(const char *text)
{
	if (write(out, text, std::strlen(text)) < 0)
		_exit(99);
}

static ssize_t called_back(void *, const char *, size_t size)
{
	note("in a call\n");
	try {
		throw std::runtime_error("thrown");
	} catch (const std::exception &) {
		if (!std::strcmp(how, "through"))
			throw;
	}
	return static_cast<ssize_t>(size);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	// No core file in the directory of the tests.
	const rlimit none{};
	if (setrlimit(RLIMIT_CORE, &none))
		return 1;
	how = argv[1];
	out = open((std::string(argv[2]) + "/out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
	cookie_io_functions_t functions{};
	functions.write = called_back;
	FILE *file = fopencookie(nullptr, "w", functions);
	if (!file || setvbuf(file, nullptr, _IONBF, 0))
		return 1;
	try {
		std::fwrite("x", 1, 1, file);
	} catch (const std::exception &) {
		note("caught\n");
		return 5;
	}
	note("after\n");
	return 0;
}
