/* `busy SECONDS`: computes. */
#include <time.h>

#include "case.h"

int main(int argc, char **argv)
{
	long until = time(NULL) + number(argc, argv, 1);
	volatile double sum = 0;

	for (double x = 1; time(NULL) < until; x++)
		for (int i = 0; i < 100000; i++)
			sum += 1 / (x + i);
	return sum < 0;
}
