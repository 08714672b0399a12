/* SPDX-License-Identifier: GPL-2.0 */
/* C streams: which descriptor a FILE is on, and where in its file the program is, which its buffer hides. */
#ifndef IOT_STREAM_H
#define IOT_STREAM_H

#define O_APPEND 00002000

static __always_inline bool iot_stdio_read(u64 stream, struct iot_stdio *x)
{
	return stream && !bpf_probe_read_user(x, sizeof(*x), (void *)stream) &&
	       (x->flags & IOT_STDIO_MAGIC_MASK) == IOT_STDIO_MAGIC;
}

/* Is the error flag of the stream set? */
static __noinline bool iot_stream_failed(u64 stream)
{
	u32 flags = 0;

	return stream && !bpf_probe_read_user(&flags, sizeof(flags), (void *)stream) &&
	       (flags & IOT_STDIO_MAGIC_MASK) == IOT_STDIO_MAGIC && (flags & IOT_STDIO_ERROR);
}

/*
 * Is the file of a stream one to be traced? If so, sends the descriptor and the file of the stream, unless
 * this thread sent them already.
 */
static __always_inline bool iot_stream_wanted(struct iot_task *t, u64 stream, u32 fd, struct file *file)
{
	/* Streams are at least as far apart as the struct is long. */
	struct iot_known_stream *known = &t->streams[(stream >> 8 ^ stream >> 12) & (IOT_KNOWN_STREAMS - 1)];
	struct iot_file_key key = {};
	struct inode *inode = IOT_READ(file, f_inode);
	struct iot_scratch *out;
	struct iot_stream *e;

	if (known->stream == stream && known->file == (u64)file && known->inode == (u64)inode)
		return true;
	if (!iot_file_wanted(inode))
		return false;
	out = iot_scratch();
	if (!out) {
		iot_lost(IOT_LOSS_STORAGE, 0);
		return true;
	}
	e = &out->stream;
	iot_key_of(inode, &key);
	__builtin_memset(e, 0, sizeof(*e));
	e->type = IOT_T_STREAM;
	e->fd = fd;
	e->thread = t->thread;
	e->stream = stream;
	e->ino = key.ino;
	e->dev = key.dev;
	e->generation = key.generation;
	e->time = t->now = bpf_ktime_get_ns();
	iot_send_file(t, file);
	if (!iot_send(IOT_C_LIFE, 0, e, sizeof(*e))) {
		known->stream = stream;
		known->file = (u64)file;
		known->inode = (u64)inode;
	}
	return true;
}

/*
 * Where in its file the next byte of a stream comes from or goes to; -1: it is on no regular file or block device, or
 * of wide characters. As do_ftell of libio/fileops.c computes it, but with the kernel's own file position.
 */
__noinline s64 iot_stream_at(struct iot_task *t, u64 stream, bool write)
{
	struct iot_stdio *x;
	struct file *file;
	bool unwritten;
	s64 at;

	if (!t)
		return -1;
	x = &t->stream;
	if (!iot_stdio_read(stream, x) || !(x->flags & IOT_STDIO_FILE) || x->fd < 0)
		return -1;
	file = iot_fd_file(bpf_get_current_task_btf(), x->fd);
	if (!file || !iot_stream_wanted(t, stream, x->fd, file) || x->mode > 0)
		return -1;
	unwritten = x->write_ptr > x->write_base;
	if (write && (IOT_READ(file, f_flags) & O_APPEND))
		return IOT_READ(file, f_inode, i_size) + (unwritten ? x->write_ptr - x->write_base : 0);
	at = IOT_READ(file, f_pos);
	if (unwritten)
		return at + (s64)(x->write_ptr - x->read_end);
	at -= x->read_end - x->read_ptr;
	if (x->flags & IOT_STDIO_BACKUP)
		at -= x->save_end - x->save_base;
	return at;
}

#endif
