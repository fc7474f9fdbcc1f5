/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The bytes that a traced process shares with a recorder: one file per process in a directory of
 * the user's own. This is the only definition; crates/abi has its Rust view, compared by a test.
 *
 *   header | ring controls, one per possible CPU, of each set | switches | filters | objects |
 *   table of events | ring data, per CPU, of each set
 *
 * docs/format/rings.md says it in words. Every area behind the controls begins at a page. All
 * numbers are in the machine's byte order, which is little-endian on every machine that we know.
 * Offsets count bytes from the start of the file.
 *
 * A process holds a shared flock on its file for as long as it maps it, so that a recorder that
 * gets the exclusive lock knows that nobody writes any more, in whatever pid namespace it lives.
 */
#ifndef RTSCOPE_LAYOUT_H
#define RTSCOPE_LAYOUT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "rtscope", then a zero byte. Stored last, with release: before it nothing else is to be read. */
#define RTSCOPE_MAGIC UINT64_C(0x0065706f63737472)
/* Raised with every change of what stands below; a reader refuses the versions it does not know. */
#define RTSCOPE_LAYOUT_VERSION 7u
/* The version before is this one without what stands behind `more` in the header: all rings have
 * their size from the start. Readers know it. */
#define RTSCOPE_LAYOUT_VERSION_SIZED 6u
/* The one before that ends behind `name`: one set of rings, one recorder, whose filters stand
 * alone. Readers know it too. */
#define RTSCOPE_LAYOUT_VERSION_ONE_SET 5u

/* Sets of rings in a file. Each belongs to one recorder at a time: none waits for another. */
#define RTSCOPE_SETS_MAX 4u

/* Ids of events begin here; a record with the id 0 pads to the end of its sub-buffer. */
#define RTSCOPE_ID_FIRST 1u
#define RTSCOPE_ID_PADDING 0u
/* Rings have at most this many sub-buffers and bytes, sub-buffers at least so many bytes. */
#define RTSCOPE_SUBBUFFERS_MAX 64u
#define RTSCOPE_SUBBUFFER_BYTES_MIN 4096u
#define RTSCOPE_RING_BYTES_MAX (UINT64_C(1) << 32)
#define RTSCOPE_CPUS_MAX 4096u
/* Both clocks of a pair were read within so long. */
#define RTSCOPE_PAIR_WIDTH_NS 1000u
/* A payload of variable length is cut to this many bytes. */
#define RTSCOPE_PAYLOAD_BYTES_MAX 512u
/* Fields of fixed length have at most so many bytes: with the header, the smallest sub-buffer. */
#define RTSCOPE_FIXED_BYTES_MAX 4080u
/* Elements of an array, bytes of a name, fields of an event in the table. */
#define RTSCOPE_ARRAY_LENGTH_MAX 512u
#define RTSCOPE_NAME_BYTES_MAX 255u
#define RTSCOPE_FIELDS_MAX 64u

enum rtscope_clock {
    /* The counter of the CPU (TSC, CNTVCT): the recorder converts. */
    RTSCOPE_CLOCK_COUNTER = 0,
    /* CLOCK_MONOTONIC in nanoseconds. */
    RTSCOPE_CLOCK_MONOTONIC = 1,
};

enum rtscope_mode {
    /* A full ring keeps what it has; new events are counted as lost. */
    RTSCOPE_MODE_DISCARD = 0,
    /* A full ring gives up its oldest sub-buffer: a flight recorder. */
    RTSCOPE_MODE_OVERWRITE = 1,
    /* A thread that finds its ring full waits for a reader, at most `block_ns`; then as discard. */
    RTSCOPE_MODE_BLOCK = 2,
};

/* What the traced code looks at. */
enum rtscope_enabled {
    /* The event goes into the rings of set 0, without a detour. */
    RTSCOPE_ENABLED = 1,
    /* The library is asked first: it evaluates filters, and writes into the rings of other sets. */
    RTSCOPE_FILTERED = 2,
};

/* Why an event was not recorded. */
enum rtscope_loss {
    /* The ring was full, in the mode discard. */
    RTSCOPE_LOSS_FULL = 0,
    /* The critical section was aborted too often, as under a debugger that steps. */
    RTSCOPE_LOSS_ABORTED = 1,
    /* The thread has no rseq area, although the process has: one that clone() made bare. */
    RTSCOPE_LOSS_NO_RSEQ = 2,
    /* Without rseq: all rings were in use by other threads. Of entries of functions
     * (librtscope-patchable): the thread was in the middle of another record. */
    RTSCOPE_LOSS_BUSY = 3,
    /* The record is larger than a sub-buffer. */
    RTSCOPE_LOSS_TOO_LARGE = 4,
    /* The ring of the CPU has no memory: it was offline, or there was none, when some was given. */
    RTSCOPE_LOSS_NO_RING = 5,
    RTSCOPE_LOSSES = 6,
};

/*
 * The types of fields, as they stand in descriptors, and what may stand before a type. A payload
 * has its fields one after the other, without gaps: numbers as they are, texts, bytes and sequences
 * behind a uint16_t that counts their bytes or elements, arrays without a count.
 */
enum rtscope_field {
    RTSCOPE_FIELD_END = 0,
    RTSCOPE_FIELD_U8 = 1,
    RTSCOPE_FIELD_U16 = 2,
    RTSCOPE_FIELD_U32 = 3,
    RTSCOPE_FIELD_U64 = 4,
    RTSCOPE_FIELD_I8 = 5,
    RTSCOPE_FIELD_I16 = 6,
    RTSCOPE_FIELD_I32 = 7,
    RTSCOPE_FIELD_I64 = 8,
    /* The same in hexadecimal. */
    RTSCOPE_FIELD_X8 = 9,
    RTSCOPE_FIELD_X16 = 10,
    RTSCOPE_FIELD_X32 = 11,
    RTSCOPE_FIELD_X64 = 12,
    RTSCOPE_FIELD_F32 = 13,
    RTSCOPE_FIELD_F64 = 14,
    /* A text without its final zero. */
    RTSCOPE_FIELD_TEXT = 15,
    /* Bytes of no further type. */
    RTSCOPE_FIELD_BYTES = 16,
    /* Before a type: the field is in no record; filters alone see it. */
    RTSCOPE_FIELD_HIDDEN = 64,
    /* Before a number: its bytes are in network order. */
    RTSCOPE_FIELD_BIG_ENDIAN = 65,
    /* Before an integer: the name of an enumeration (ended by a zero), whose labels it has. */
    RTSCOPE_FIELD_ENUMERATION = 66,
    /* Before a number, or before TEXT (characters up to a zero): a uint32_t, as many of them. */
    RTSCOPE_FIELD_ARRAY = 67,
    /* Before a number: any number of them. */
    RTSCOPE_FIELD_SEQUENCE = 68,
};

/* Of each type of numbers its bytes and what they mean: UNSIGNED, SIGNED or REAL. */
#define RTSCOPE_NUMBERS(number)                                                                    \
    number(U8, 1, UNSIGNED) number(U16, 2, UNSIGNED)                                               \
    number(U32, 4, UNSIGNED) number(U64, 8, UNSIGNED)                                              \
    number(I8, 1, SIGNED) number(I16, 2, SIGNED)                                                   \
    number(I32, 4, SIGNED) number(I64, 8, SIGNED)                                                  \
    number(X8, 1, UNSIGNED) number(X16, 2, UNSIGNED)                                               \
    number(X32, 4, UNSIGNED) number(X64, 8, UNSIGNED)                                              \
    number(F32, 4, REAL) number(F64, 8, REAL)

/* What an entry of the table describes. */
enum rtscope_entry_kind {
    RTSCOPE_ENTRY_EVENT = 0,
    RTSCOPE_ENTRY_ENUMERATION = 1,
    RTSCOPE_ENTRY_NOTE = 2,
};

/* A set of rings beside the first. */
struct rtscope_set {
    /* The recorder whose it is; 0: nobody's; all bits: nobody's either, as the one that had it has
     * ended, and what it holds is older than whoever takes it next. A process that starts gives it
     * to a recorder that announced itself (`!session`), else a recorder takes it: who holds the
     * lock (F_OFD_SETLK) on the byte of the file that has the set's number. */
    uint64_t session;
    uint64_t data_offset;
    /* Bytes of each of its rings and of their sub-buffers, powers of two; 0: none yet. */
    uint64_t ring_bytes;
    uint64_t subbuffer_bytes;
    /* enum rtscope_mode; its recorder may change it. */
    uint32_t mode;
    uint32_t padding;
};

/* The first bytes of the file. Mode, ring data and sizes are those of set 0. */
struct rtscope_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t file_bytes;
    /* When the file was made, on CLOCK_MONOTONIC; of the machine, in whatever time namespace. */
    uint64_t begin_ns;
    /* The CPU's counter at most RTSCOPE_PAIR_WIDTH_NS later; 0 when it is not the clock. */
    uint64_t begin_counter;
    /* Both clocks at a later moment, from a recorder: for whom finds the file after a crash. */
    uint64_t pair_counter;
    uint64_t pair_ns;
    /* As the process itself sees its id; other namespaces see another. */
    int32_t pid;
    /* enum rtscope_clock */
    uint32_t clock;
    /* enum rtscope_mode; a recorder may change it. */
    uint32_t mode;
    /* Whether threads write through rseq (1) or take turns (0). */
    uint32_t rseq;
    /* Rings, one per possible CPU. */
    uint32_t rings_length;
    /* In the mode block: how long an event waits at most. */
    uint32_t block_ns;
    uint64_t controls_offset;
    uint64_t switches_offset;
    uint64_t switches_bytes;
    uint64_t filters_offset;
    uint64_t filters_bytes;
    uint64_t objects_offset;
    uint64_t objects_bytes;
    uint64_t table_offset;
    uint64_t table_bytes;
    uint64_t data_offset;
    /* Bytes of each ring and of its sub-buffers, powers of two; 0: none yet. */
    uint64_t ring_bytes;
    uint64_t subbuffer_bytes;
    /* Bytes of the table that are complete; grows when libraries are loaded. */
    uint64_t table_used;
    /* Bytes of the area of filters that are taken, the first 8 by nobody; recorders move it, in
     * atomic steps, and never back. */
    uint64_t filters_used;
    /* Bytes of the area of objects that are complete. */
    uint64_t objects_used;
    /* Events that found no room in the table or among the switches and cannot be enabled. */
    uint64_t unregistered;
    /* The process's name when the file was made, ended by a zero. */
    char name[16];
    /* Sets of rings; their controls follow each other. */
    uint32_t sets_length;
    uint32_t padding;
    /* Whose set 0 is. */
    uint64_t session;
    struct rtscope_set more[RTSCOPE_SETS_MAX - 1];
    /* Of each set: the most bytes that each of its rings can get, a power of two, where they had no
     * size when the file was made; else 0. Such rings lie behind the file's end. Whoever first
     * needs them stores their size in `ring_bytes`, from 0, in one step and for good, and makes the
     * file longer before. */
    uint64_t room_bytes[RTSCOPE_SETS_MAX];
    /* Those rings have so many sub-buffers, or fewer, of RTSCOPE_SUBBUFFER_BYTES_MIN; their
     * `subbuffer_bytes` says nothing. */
    uint32_t subbuffers;
    uint32_t padding_behind;
};

/* The control of one ring, in two cache lines: what the writer changes, what the reader does. */
struct rtscope_ring {
    /* Bytes ever written. Moving it is the last store of a record, and what makes it exist. */
    uint64_t head;
    /* Without rseq: 1 while a thread writes. */
    uint64_t owner;
    uint64_t lost[RTSCOPE_LOSSES];
    /* discard: bytes ever read, moved by the reader. overwrite: what the writer gave up. */
    uint64_t tail;
    /* Of `lost`, what a reader has put where it put the records before `tail`. */
    uint64_t lost_stated[RTSCOPE_LOSSES];
    /*
     * Not 0: it has no memory, and `tail` says so to writers, who find no room. Memory is given
     * before the first event is switched on: by the process or by a recorder, whoever switches.
     */
    uint64_t absent;
};

/* The state of one event at one place in the code. A page of them is mapped over the section
 * rtscope_switches of the program. It is changed as a whole, in one atomic step: several recorders
 * do so. */
struct rtscope_switch {
    /* enum rtscope_enabled, as it follows from what stands behind. */
    uint8_t enabled;
    /* A bit for each set of rings that gets the event. */
    uint8_t sets;
    uint16_t id;
    /* Where its filters are (struct rtscope_filters) in the area of filters, in 8 bytes; 0: it has
     * none. */
    uint32_t filter;
};

/* The filters of an event: of each set where it is in the area of filters, in 8 bytes; 0: it gets
 * all. Never changed: who needs others makes them anew. */
struct rtscope_filters {
    uint32_t at[RTSCOPE_SETS_MAX];
};

/* A record: this header, the payload, and zeros to a multiple of 8 bytes. No record crosses the
 * end of a sub-buffer. */
struct rtscope_record {
    /* Of the whole record, in 8 bytes. */
    uint16_t words;
    uint16_t id;
    /* As the process sees it; 0 where it cannot be known without a system call. */
    int32_t tid;
    uint64_t time;
};

/*
 * An entry of the table. Behind it, `text_bytes` of description, then zeros to a multiple of 8
 * bytes.
 *
 * Of an event: the level (one byte), provider and name (each ended by a zero), then for each field
 * its type (one byte, behind what may stand before it) and its name (ended by a zero), and
 * RTSCOPE_FIELD_END.
 *
 * Of an enumeration, whose id is 0: its name (ended by a zero), then for each label the first and
 * the last value that it stands for (int64_t each) and itself (ended by a zero). Events that come
 * later mean the last enumeration of a name.
 *
 * Of a note, whose id is 0: why an event is missing where it may be looked for. The event's
 * provider and name, then what is missing, what was found, and what fixes it (each ended by a
 * zero).
 */
struct rtscope_entry {
    uint32_t entry_bytes;
    uint32_t text_bytes;
    uint32_t id;
    /* enum rtscope_entry_kind */
    uint32_t kind;
    /* Where its switch is in the file. */
    uint64_t switch_offset;
    /* Where its place in the code is in the process's memory; 0 when it has none. */
    uint64_t code_address;
};

/* A program or library that the process had loaded. Behind it the build id, then the path, then
 * zeros to a multiple of 8 bytes. */
struct rtscope_loaded {
    uint32_t entry_bytes;
    uint16_t build_id_bytes;
    uint16_t path_bytes;
    /* Where it begins in the process's memory, and what is added to the addresses of its file. */
    uint64_t begin;
    uint64_t bytes;
    uint64_t bias;
    /* When it was noticed, on CLOCK_MONOTONIC; what lay there before is gone since then. */
    uint64_t noticed_ns;
};

#ifdef __cplusplus
}
#endif

#endif
