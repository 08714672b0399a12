
static int nc[HANDLES];

/* The call succeeds. Values that do not fit into a type are no failure: the data is not that of the traced program. */
static inline void done(const char *call, int result)
{
	if (result != NC_NOERR && result != NC_ERANGE)
		fail("%s: %s", call, NC(strerror)(result));
}
#define good done

/* Numbers of variables, and whether access to them is collective, in the file that was used last. */
static struct {
	int known, file, variable, collective;
} known[OBJECT_COUNT];

/* The variable, or what an attribute is of. */
static inline int variable(int file, const struct object *object)
{
	long long at = object - OBJECTS;

	if (object->attribute && !*object->path)
		return NC_GLOBAL;
	if (!known[at].known || known[at].file != file) {
		known[at].known = 1;
		known[at].file = file;
		known[at].collective = 0;
		good("inq_varid", NC(inq_varid)(file, object->path + 1, &known[at].variable));
	}
	return known[at].variable;
}

/* The variable, with collective or independent access. */
static inline int accessed(int file, const struct object *object, long long collective)
{
	int result = variable(file, object);
	long long at = object - OBJECTS;

	if (known[at].collective != collective) {
		good("var_par_access", set_access(file, result, (int)collective));
		known[at].collective = (int)collective;
	}
	return result;
}

static inline void forget(int file)
{
	for (int at = 0; at < OBJECT_COUNT; at++)
		if (known[at].file == file)
			known[at].known = 0;
}

static inline nc_type type_of(const struct object *object)
{
	if (object->text)
		return NC_CHAR;
	return object->size == 1 ? NC_BYTE : object->size == 2 ? NC_SHORT : object->size == 4 ? NC_FLOAT : NC_DOUBLE;
}

/* Defines a variable, and those of its dimensions that there are not: the trace has their lengths, and not their names. */
static inline int define(int file, const struct object *object)
{
	int dims[sizeof object->dim / sizeof *object->dim], made, result;

	for (int d = 0; d < object->dims; d++) {
		char name[64];

		snprintf(name, sizeof name, "dim_%lld", object->dim[d]);
		if (NC(inq_dimid)(file, name, &dims[d]) != NC_NOERR)
			good("def_dim", NC(def_dim)(file, name, (extent)object->dim[d], &dims[d]));
	}
	result = NC(def_var)(file, object->path + 1, type_of(object), object->dims, dims, &made);
	if (NO_FILL && result == NC_NOERR)
		result = NC(def_var_fill)(file, made, 1, NULL);
	return result;
}

/* Files that were there before have all variables of the table. */
static inline void make_found(long long number)
{
	int file;

	good("create", create_found(number, &file));
	for (int at = 0; at < OBJECT_COUNT; at++)
		if (OBJECTS[at].file == number && !OBJECTS[at].attribute && !OBJECTS[at].group)
			good("def_var", define(file, &OBJECTS[at]));
	good("enddef", NC(enddef)(file));
	good("close", NC(close)(file));
}

static inline void finish(void)
{
	(void)nc;
}
