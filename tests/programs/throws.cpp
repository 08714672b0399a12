// Exceptions pass through its functions, which also end in jumps to others (-O2): `throws DIR`.
//
// Prints what it caught. A return probe on any function that an exception passes through would end it with SIGABRT.
#include <cstdio>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace sim
{
static std::string dir;
static char block[4096];

// Its last act is a call of close, which the compiler makes a jump.
[[gnu::noinline]] void put(const char *name, int blocks)
{
	int fd = open((dir + name).c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644);
	for (int i = 0; i < blocks; i++)
		if (write(fd, block, sizeof(block)) != sizeof(block))
			throw std::runtime_error("short write");
	close(fd);
}

struct Solver {
	virtual ~Solver() = default;
	// Ends in a jump to put, or by an exception.
	[[gnu::noinline]] virtual void step(int n)
	{
		put("/a", n);
		if (n == 2)
			throw std::runtime_error("two");
		put("/b", 1);
	}
	// Ends in a jump to wherever step is.
	[[gnu::noinline]] void run(int n)
	{
		put("/run", 3);
		step(n);
	}
};

template <class T> [[gnu::noinline]] void save(const T &value)
{
	std::FILE *file = std::fopen((dir + "/text").c_str(), "w");
	std::fputs(std::to_string(value).c_str(), file);
	std::fclose(file);
}

namespace
{
[[gnu::noinline]] int hidden(int n)
{
	put("/hidden", n);
	return n;
}
} // namespace
} // namespace sim

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	sim::dir = argv[1];
	auto *solver = new sim::Solver;
	int caught = 0;
	for (int n = 1; n < 4; n++) {
		try {
			solver->step(n);
		} catch (const std::exception &) {
			caught++;
			// The handler's own: no longer inside step.
			sim::put("/caught", 1);
		}
	}
	try {
		solver->run(2);
	} catch (const std::exception &) {
		caught++;
	}
	solver->run(1);
	sim::save(3);
	sim::save(2.5);
	caught += sim::hidden(1);
	std::printf("%d\n", caught);
	delete solver;
	return caught == 3 ? 0 : 1;
}
