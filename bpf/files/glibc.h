/* SPDX-License-Identifier: GPL-2.0 */
/* The streams of the GNU C library, as they lie in a program's memory. */
#ifndef IOT_GLIBC_H
#define IOT_GLIBC_H

/*
 * struct _IO_FILE of the GNU C library (bits/types/struct_FILE.h). Part of its ABI: programs that were compiled with the
 * macros of older headers look inside.
 */
struct iot_stdio {
	u32 flags;
	u32 pad;
	u64 read_ptr;
	u64 read_end;
	u64 read_base;
	u64 write_base;
	u64 write_ptr;
	u64 write_end;
	u64 buf_base;
	u64 buf_end;
	u64 save_base;
	u64 backup_base;
	u64 save_end;
	u64 markers;
	u64 chain;
	s32 fd;
	u32 flags2;
	u64 rest[9];
	s32 mode; /* above 0: of wide characters */
	u32 pad2;
};

_Static_assert(__builtin_offsetof(struct iot_stdio, fd) == 112, "_fileno");
_Static_assert(__builtin_offsetof(struct iot_stdio, mode) == 192, "_mode");

/* flags; libio/libio.h. Other C libraries have no such number there, and their streams are not looked into. */
#define IOT_STDIO_MAGIC	     0xfbad0000
#define IOT_STDIO_MAGIC_MASK 0xffff0000
#define IOT_STDIO_ERROR	     0x0020
#define IOT_STDIO_FILE	     0x2000 /* has a descriptor; the streams in memory have none */
#define IOT_STDIO_BACKUP     0x0100 /* reads what was pushed back */

#endif
