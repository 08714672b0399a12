/*
 * Streams of C++ on files in a directory: `streams DIR`. What its library makes of them others observe; this prints
 * what it asked of them, on stderr: {"pid":..,"written":bytes,"read":bytes,"lines":n,"printed":bytes}
 */
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2) {
		std::cerr << "usage: streams DIR\n";
		return 2;
	}
	const std::string path = std::string(argv[1]) + "/lines.txt";
	long written = 0, read = 0, printed = 0;
	int lines = 0;
	{
		std::ofstream out(path);
		for (int i = 0; i < 5000; i++) {
			const std::string line = "line " + std::to_string(i) + "\n";
			out << line;
			written += (long)line.size();
		}
		/* More than its buffer. */
		const std::string block(100000, 'b');
		out.write(block.data(), (std::streamsize)block.size());
		written += (long)block.size();
	}
	{
		std::ifstream in(path);
		std::string line;
		while (std::getline(in, line)) {
			read += (long)line.size() + !in.eof();
			lines++;
		}
		/* To where something is read once more. */
		in.clear();
		in.seekg(5);
		read += in.get() == '0';
	}
	/* cout is synchronized with stdout: each of these is a call of C. */
	for (int i = 0; i < 100; i++) {
		std::cout << "line";
		std::cout.put('\n');
		printed += 5;
	}
	/* By now nothing of it was written; the end of the program does that. */
	dprintf(2, "{\"pid\":%d,\"written\":%ld,\"read\":%ld,\"lines\":%d,\"printed\":%ld}\n", getpid(), written, read,
		lines, printed);
	return 0;
}
