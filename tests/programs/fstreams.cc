// C++ streams: `fstreams DIR LINES`. Writes DIR/text line by line, and DIR/blocks in pieces that are larger than the
// buffer, and reads both back. The buffers are the library's own, so what it asks of the kernel is known by strace only.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	const std::string dir = argv[1];
	const int lines = std::atoi(argv[2]);
	{
		std::ofstream text(dir + "/text");
		for (int i = 0; i < lines; i++)
			text << "line " << i << '\n';
		text << std::flush;
		std::ofstream blocks(dir + "/blocks", std::ios::binary);
		const std::vector<char> block(100000, 'b');
		for (int i = 0; i < 5; i++)
			blocks.write(block.data(), static_cast<std::streamsize>(block.size()));
		if (!text || !blocks)
			return 1;
	}
	std::ifstream text(dir + "/text");
	std::string line;
	int read = 0;
	while (std::getline(text, line))
		read++;
	std::ifstream blocks(dir + "/blocks", std::ios::binary);
	std::vector<char> all(600000);
	blocks.read(all.data(), static_cast<std::streamsize>(all.size()));
	std::ifstream missing(dir + "/missing");
	return read == lines && blocks.gcount() == 500000 && !missing ? 0 : 1;
}
