/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of kernel functions that identify the owner of a bio. Found by the kernel: /proc/kallsyms is long. */
#ifndef IOT_SYMBOLS_H
#define IOT_SYMBOLS_H

/* Not there: 0. */
struct iot_symbols {
	/* Called when direct I/O is complete: fs/iomap/direct-io.c, block/fops.c, fs/aio.c. */
	u64 iomap_dio_bio_end_io;
	u64 blkdev_bio_end_io;
	u64 blkdev_bio_end_io_async;
	u64 aio_complete_rw;
	/* Called when a block of a journal is written: fs/buffer.c and fs/jbd2/commit.c, fs/xfs/xfs_log.c, block/bio.c. */
	u64 end_bio_bh_io_sync;
	u64 journal_end_buffer_io_sync;
	u64 xlog_bio_end_io;
	u64 bio_chain_endio;
};
struct iot_symbols iot_symbols;

#define IOT_SYMBOL(name)                                                                                               \
	({                                                                                                             \
		static const char iot_name_##name[] = #name;                                                           \
		bpf_kallsyms_lookup_name(iot_name_##name, sizeof(iot_name_##name), 0, &address) ? 0 : address;         \
	})

/* Run by user space before anything is attached. */
SEC("?syscall")
int iot_find_symbols(void *ctx)
{
	u64 address = 0;

	iot_symbols.iomap_dio_bio_end_io = IOT_SYMBOL(iomap_dio_bio_end_io);
	iot_symbols.blkdev_bio_end_io = IOT_SYMBOL(blkdev_bio_end_io);
	iot_symbols.blkdev_bio_end_io_async = IOT_SYMBOL(blkdev_bio_end_io_async);
	iot_symbols.aio_complete_rw = IOT_SYMBOL(aio_complete_rw);
	iot_symbols.end_bio_bh_io_sync = IOT_SYMBOL(end_bio_bh_io_sync);
	iot_symbols.journal_end_buffer_io_sync = IOT_SYMBOL(journal_end_buffer_io_sync);
	iot_symbols.xlog_bio_end_io = IOT_SYMBOL(xlog_bio_end_io);
	iot_symbols.bio_chain_endio = IOT_SYMBOL(bio_chain_endio);
	return 0;
}

#endif
