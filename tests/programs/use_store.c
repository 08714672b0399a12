/* Uses the library of store.h: `use_store DIR`. Counts its calls and bytes, and prints them. */
#include "store.h"
#include "truth.h"

#define STORE(f, ...) COUNT("store", f, __VA_ARGS__)

enum {
	RECORDS = 20,
	DOUBLES = 512,
};

int main(int argc, char **argv)
{
	char path[4096], missing[4096], text[4096];
	double values[DOUBLES];
	CHECK(argc == 2);
	snprintf(path, sizeof(path), "%s/records.dat", argv[1]);
	snprintf(missing, sizeof(missing), "%s/no/such.dat", argv[1]);
	CHECK(STORE(store_version) == 3);
	CHECK(!STORE(store_open, missing, 0));

	store_t *store = STORE(store_open, path, 1);
	CHECK(store);
	for (int i = 0; i < DOUBLES; i++)
		values[i] = i;
	for (int i = 0; i < RECORDS; i++) {
		size_t bytes = sizeof(values) / (size_t)(i % 2 + 1);
		CHECK(STORE(store_put, store, 0.5, values, bytes, (off_t)i * (off_t)sizeof(values)) == (ssize_t)bytes);
		tally("store", "_written", (long)bytes);
	}
	CHECK(STORE(store_put, store, 0.5, values, 8, -1) == -1);
	CHECK(!STORE(store_flush, store));
	CHECK(!STORE(store_close, store));

	store = STORE(store_open, path, 0);
	CHECK(store);
	/* The last read finds the half of the last record that is there. */
	for (long n = 1; n > 0;) {
		n = STORE(store_get_doubles, store, values, DOUBLES);
		tally("store", "_read", n * (long)sizeof(double));
	}
	CHECK(!STORE(store_close, store));
	CHECK(!STORE(store_remove, path));

	snprintf(text, sizeof(text), "{\"pid\":%d,\"calls\":", (int)getpid());
	truth_calls(text, sizeof(text), "store");
	size_t at = strlen(text);
	snprintf(text + at, sizeof(text) - at, ",\"read\":%ld,\"written\":%ld,\"failed\":2}\n",
		 truth_bytes("store", "_read"), truth_bytes("store", "_written"));
	CHECK(!truth_write(1, text));
	return 0;
}
