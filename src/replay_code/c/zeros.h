/* Files that were there before are of zeros. */
static inline void make_found(long long file)
{
	static char zeros[1 << 16];
	FILE *made = fopen(path(file), "w");

	if (!made)
		fail("%s: %s", path(file), strerror(errno));
	for (long long left = FOUND[file]; left > 0;) {
		size_t part = left < (long long)sizeof zeros ? (size_t)left : sizeof zeros;

		if (fwrite(zeros, 1, part, made) != part)
			fail("%s: %s", path(file), strerror(errno));
		left -= (long long)part;
	}
	if (fclose(made))
		fail("%s: %s", path(file), strerror(errno));
}
