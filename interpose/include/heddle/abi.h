/*
 * The shared-memory contract between the interposer and heddled, version 1.
 *
 * Three kinds of segments, each a sealed memfd with one writer (or, for the arena, one class of
 * writers). Everything a reader finds here was written by somebody it does not trust: read a word
 * once into a local, validate it, use the local.
 *
 * Rules of this file: fixed-width members only, no pointers, no bit-fields, no _Atomic types; every
 * constant is an enum, so that it reaches the debug information from which cmd/genabi writes the
 * Go mirror; members are grouped by writer, one cache line or more per group; after a release the
 * layout only grows at the end. Words that change while others look are read and written through
 * heddle/atomic.h. The words named *_ns hold nanoseconds of the clock described by
 * struct heddle_verdict_process unless they say that they are a duration.
 */
#ifndef HEDDLE_ABI_H
#define HEDDLE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define HEDDLE_ALIGNED(n) alignas(n)
#define HEDDLE_ASSERT_LAYOUT(cond) static_assert(cond, #cond)
#else
#include <stdalign.h>
#define HEDDLE_ALIGNED(n) alignas(n)
#define HEDDLE_ASSERT_LAYOUT(cond) _Static_assert(cond, #cond)
#endif

enum heddle_abi_limits {
    HEDDLE_ABI_VERSION = 1,
    HEDDLE_ABI_OLDEST = 1, /* oldest version that this build can still read */
    HEDDLE_CACHE_LINE = 64,
    HEDDLE_DEVICES_MAX = 16,  /* devices that one client can use; slots, never ordinals */
    HEDDLE_THREADS_MAX = 64,  /* launch counters; later threads share the last one */
    HEDDLE_PEERS_MAX = 256,   /* higher-class clients that one client can watch */
    HEDDLE_PEER_WORDS = 4,    /* HEDDLE_PEERS_MAX / 64 */
    HEDDLE_MEMBERS_MAX = 256, /* clients of one class on one device that share an arena */
    HEDDLE_CLASSES_MAX = 10,  /* class 0 is the most urgent, 9 the least */
    HEDDLE_LOG_RECORDS = 64,
    HEDDLE_LOG_TEXT = 104,
    HEDDLE_UUID_BYTES = 16,
    HEDDLE_SAMPLES = 256,     /* measurements that wait to be read */
    HEDDLE_KERNELS = 256,     /* descriptions of kernels that wait to be read */
    HEDDLE_KERNEL_NAME = 176, /* bytes of a name that are told; a longer one is cut */
    HEDDLE_TRACE = 4096,      /* records of a timeline that wait to be read */
    HEDDLE_PROFILE_ENTRIES = 2048,
    HEDDLE_PROFILE_PROBES = 16, /* places in which an entry can be */
    HEDDLE_PROFILE_SHIFT = 53,  /* key >> shift is the first of them */
};

enum heddle_segment_magic {
    HEDDLE_MAGIC_CLIENT = 0x4c434448,  /* "HDCL" */
    HEDDLE_MAGIC_VERDICT = 0x44564448, /* "HDVD" */
    HEDDLE_MAGIC_ARENA = 0x52414448,   /* "HDAR" */
};

/* The scheduling classes that have names; any number from 0 to 9 is accepted. */
enum heddle_class {
    HEDDLE_CLASS_REALTIME = 0,
    HEDDLE_CLASS_HIGH = 2,
    HEDDLE_CLASS_NORMAL = 5,
    HEDDLE_CLASS_LOW = 7,
    HEDDLE_CLASS_IDLE = 9,
};

/*
 * The gate word. Zero means: open, nobody to yield to, nobody who yields to us, so that a launch
 * is one load, one comparison and one count. Any bit sends the launch to the slow path, which
 * reads the rest of the verdict.
 */
enum heddle_gate_bits {
    HEDDLE_GATE_CLOSED = 1 << 0,      /* held by the daemon: quota, drain, suspension, mediation */
    HEDDLE_GATE_YIELD = 1 << 1,       /* watch the peers in yields[] before a launch */
    HEDDLE_GATE_PUBLISH = 1 << 2,     /* others yield to this client: keep busy_streams true */
    HEDDLE_GATE_WINDOW = 1 << 3,      /* bound the outstanding work by window_ns */
    HEDDLE_GATE_FILL = 1 << 4,        /* may fill predicted gaps while it holds the token */
    HEDDLE_GATE_MEASURE = 1 << 5,     /* device time is measured: see measure_every */
    HEDDLE_GATE_KNOWN = (1 << 6) - 1, /* unknown bits are treated as HEDDLE_GATE_CLOSED */
};

enum heddle_fail_mode {
    HEDDLE_FAIL_OPEN = 0,   /* without a daemon the last verdict stands, a closed gate opens */
    HEDDLE_FAIL_CLOSED = 1, /* without a daemon the last verdict stands, closed stays closed */
};

enum heddle_clock_source {
    HEDDLE_CLOCK_MONOTONIC = 0, /* clock_gettime(CLOCK_MONOTONIC) */
    HEDDLE_CLOCK_COUNTER = 1,   /* TSC on x86-64, CNTVCT on arm64, scaled as below */
};

enum heddle_log_level {
    HEDDLE_LOG_DEBUG = 0,
    HEDDLE_LOG_INFO = 1,
    HEDDLE_LOG_WARN = 2,
    HEDDLE_LOG_ERROR = 3,
};

enum heddle_sample_flags {
    HEDDLE_SAMPLE_MEASURED = 1 << 0, /* device_ns is valid: it was measured around the launch */
    HEDDLE_SAMPLE_GAP = 1 << 1,      /* gap_ns is valid */
    HEDDLE_SAMPLE_GRAPH = 1 << 2,    /* the launch of a whole graph */
};

/* What a record of a timeline tells of. */
enum heddle_trace_kind {
    HEDDLE_TRACE_LAUNCH = 1, /* a call that launches; duration_ns is what the driver took for it */
    HEDDLE_TRACE_DEVICE = 2, /* the device time of the launch with the same time and stream */
    HEDDLE_TRACE_HOLD = 3,   /* a launch that waited for one reason */
    HEDDLE_TRACE_GAP = 4,    /* idle time of the client on the device */
};

enum heddle_trace_flags {
    HEDDLE_TRACE_MEASURED = 1 << 0, /* of a launch: a record of its device time follows */
    HEDDLE_TRACE_GRAPH = 1 << 1,    /* the launch of a whole graph */
    HEDDLE_TRACE_OVERRUN = 1 << 2,  /* of a hold: it ended because it had lasted max_hold_ns */
    HEDDLE_TRACE_YIELD = 1 << 3,    /* of a hold: at a yield point, not of a launch */
};

enum heddle_kernel_flags {
    HEDDLE_KERNEL_GRAPH = 1 << 0,      /* a whole graph under the name of its first kernel */
    HEDDLE_KERNEL_CUT = 1 << 1,        /* the name is longer than what is told */
    HEDDLE_KERNEL_ATTRIBUTES = 1 << 2, /* the driver told what the kernel needs */
};

enum heddle_profile_flags {
    HEDDLE_PROFILE_CORUN = 1 << 0,  /* may run beside peers whose corun bit is set */
    HEDDLE_PROFILE_STEADY = 1 << 1, /* takes nearly its estimate each time */
};

/* First in every segment. Written once, before the descriptor is passed on. */
struct heddle_segment_header {
    HEDDLE_ALIGNED(64) uint32_t magic;
    uint32_t abi_version;
    uint64_t size;       /* bytes of the whole segment, as the writer mapped it */
    uint64_t features;   /* optional parts that the writer uses; unknown bits are ignored */
    uint64_t generation; /* daemon generation under which the segment was made, 0 if none */
    uint64_t reserved[4];
};

/* ---- client segment: written by the client, read by heddled and by same-device clients ---- */

/* writer: client; reader: daemon */
struct heddle_client_process {
    HEDDLE_ALIGNED(64) uint32_t pid; /* as the client sees itself; never used as identity */
    uint32_t attach_count;           /* how often this process image attached */
    uint64_t unnamed_addresses;      /* cuGetProcAddress answers that had no exported name */
    uint64_t log_head;               /* records ever written; slot = n % HEDDLE_LOG_RECORDS */
    uint64_t log_dropped;
    uint64_t samples_head;  /* as log_head, of samples[] */
    uint64_t kernels_head;  /* as log_head, of kernels[] */
    uint64_t trace_head;    /* as log_head, of trace[] */
    uint64_t trace_dropped; /* records that found their place taken */
};

/*
 * writer: one client thread at a time; reader: daemon. A thread tells what it counted when it waits for
 * its work, and some thousand launches later at most.
 */
struct heddle_client_thread {
    HEDDLE_ALIGNED(64) uint64_t launches; /* every launch entry, graph launches included */
    uint64_t reserved[7];
};

/* One device as the client uses it. The first line is what peers poll. */
struct heddle_client_device {
    /* writer: client; readers: peers, daemon */
    HEDDLE_ALIGNED(64) uint32_t busy_streams; /* streams with outstanding work; 0 = idle */
    uint32_t doorbell;         /* futex word, changed whenever busy_streams falls to 0 */
    uint64_t idle_since_ns;    /* when busy_streams last fell to 0 */
    uint64_t busy_until_ns;    /* predicted end of the outstanding work, 0 = unknown */
    uint64_t next_launch_ns;   /* predicted next launch, 0 = unknown */
    uint64_t head_estimate_ns; /* duration: predicted time of the running kernel, 0 = unknown */
    uint64_t want_ns; /* duration: predicted time of the launch that waits for peers or for the
                         gap token, 0 = none waits for them */
    uint64_t reserved_peer[2];

    /* writer: client; reader: daemon */
    HEDDLE_ALIGNED(64) uint64_t busy_ns; /* duration: time with busy_streams > 0, ended spans */
    uint64_t busy_since_ns;              /* start of the present span, 0 = idle */
    uint64_t held_ns;       /* duration: time that callers waited for others, ended waits */
    uint64_t held_since_ns; /* start of the oldest present wait for others, 0 = nobody waits */
    uint64_t holds;         /* launches that had to wait for others */
    uint64_t overruns;      /* waits ended by max_hold_ns */
    uint64_t paced_ns;      /* duration: time that callers waited for their own window, so far */
    uint64_t graph_launches;

    /* writer: client; reader: daemon */
    HEDDLE_ALIGNED(64) uint64_t memory_bytes; /* allocated now, as counted at the entries */
    uint64_t memory_peak_bytes;
    uint64_t allocations;
    uint64_t frees;
    uint8_t uuid[HEDDLE_UUID_BYTES]; /* all zero = slot unused */
    uint64_t device_ns; /* duration: device time of completed launches, measured where it was,
                           else predicted */
    uint64_t reserved_memory[1];
};

/* A record is complete when sequence equals its number + 1; written before that word. */
struct heddle_log_record {
    HEDDLE_ALIGNED(64) uint64_t sequence;
    uint64_t time_ns;
    uint32_t level;
    uint32_t length; /* bytes of text, at most HEDDLE_LOG_TEXT */
    char text[HEDDLE_LOG_TEXT];
};

/*
 * What was seen of one launch. The idle time after a kernel is known when the next launch comes: a
 * record with HEDDLE_SAMPLE_GAP is written then. Complete as a log record is.
 */
struct heddle_sample_record {
    HEDDLE_ALIGNED(64) uint64_t sequence;
    uint64_t kernel;    /* key */
    uint64_t previous;  /* key of the launch before it on the same stream, 0 = none */
    uint64_t device_ns; /* duration */
    uint64_t gap_ns;    /* duration: idle time between the kernel's end and the next launch */
    uint64_t time_ns;   /* when the launch was made */
    uint32_t device_slot;
    uint32_t flags; /* enum heddle_sample_flags */
    uint64_t reserved;
};

/*
 * What a key stands for: written when the key is seen first, and again when the count of its
 * measured samples is a power of two, so that a reader that came late learns it. Complete as a log
 * record is.
 */
struct heddle_kernel_record {
    HEDDLE_ALIGNED(64) uint64_t sequence;
    uint64_t key;
    uint64_t module_hash; /* of the image it came from, 0 = unknown */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t dynamic_shared; /* bytes of shared memory asked for at the launch */
    uint32_t static_shared;  /* bytes of shared memory in the code */
    uint32_t registers;      /* of one thread */
    uint32_t threads_max;    /* largest block that the kernel can have */
    uint32_t blocks_per_sm;  /* blocks of this size that fit on one SM, 0 = unknown */
    uint32_t flags;          /* enum heddle_kernel_flags */
    uint32_t length;         /* bytes of name, at most HEDDLE_KERNEL_NAME */
    uint32_t reserved;
    char name[HEDDLE_KERNEL_NAME];
};

/*
 * One thing that happened, for a timeline; written while the daemon asks for one. Complete as a log
 * record is.
 */
struct heddle_trace_record {
    HEDDLE_ALIGNED(64) uint64_t sequence;
    uint64_t time_ns;     /* when it began */
    uint64_t duration_ns; /* duration */
    uint64_t kernel;      /* key; of a gap, of the kernel before it; 0 = unknown */
    uint64_t guess_ns; /* duration: device time of the launch, or length of the gap, as the client
                             had it predicted, 0 = it had not */
    uint32_t stream;   /* the client's own number of the stream, UINT32_MAX = unknown */
    uint32_t device_slot;
    uint32_t kind;   /* enum heddle_trace_kind */
    uint32_t flags;  /* enum heddle_trace_flags */
    uint32_t reason; /* of a hold: enum heddle_gate_result */
    uint32_t peer;   /* of a hold by a peer or for the token: slot of the peer */
};

struct heddle_client_segment {
    struct heddle_segment_header header;
    struct heddle_client_process process;
    struct heddle_client_device devices[HEDDLE_DEVICES_MAX]; /* peers look no further than here */
    struct heddle_client_thread threads[HEDDLE_THREADS_MAX];
    struct heddle_log_record log[HEDDLE_LOG_RECORDS];
    struct heddle_sample_record samples[HEDDLE_SAMPLES];
    struct heddle_kernel_record kernels[HEDDLE_KERNELS];
    struct heddle_trace_record trace[HEDDLE_TRACE];
};

/* ---- verdict segment: written by heddled, read by the one client it is for ---- */

/* writer: daemon; reader: client */
struct heddle_verdict_process {
    HEDDLE_ALIGNED(64) uint32_t gate; /* the gate words of all devices or-ed; futex word */
    uint32_t fail_mode;               /* enum heddle_fail_mode */
    uint32_t clock_source;            /* enum heddle_clock_source */
    uint32_t clock_shift; /* ns = base_ns + ((ticks - base_ticks) * mult >> shift), where the
                             product has 128 bits */
    uint64_t clock_mult;
    uint64_t clock_base_ticks;
    uint64_t clock_base_ns;
    uint32_t measure_every; /* device time is measured of one launch in so many, 0 = of none */
    uint32_t trace;         /* number of the timeline for which every launch is told, 0 = none */
    uint64_t reserved[2];
};

/* The verdict for one device slot. Parameters are stored first, the gate word last (release). */
struct heddle_verdict_device {
    HEDDLE_ALIGNED(64) uint32_t gate; /* enum heddle_gate_bits; futex word */
    uint32_t generation;              /* changes with every verdict; 0 = slot not bound yet */
    uint32_t priority;                /* class 0..9 */
    uint32_t weight;                  /* share inside the class, 1..10000 */
    uint64_t window_ns;               /* duration: bound on predicted outstanding work */
    uint64_t estimate_ns;             /* duration: predicted time of a kernel without profile */
    uint64_t quiet_ns;                /* duration: how long a peer must have been idle */
    uint64_t max_hold_ns;             /* duration: a held launch opens after this */
    uint32_t margin_ppm;              /* safety margin on predictions, parts per million */
    uint32_t sm_share_ppm;            /* share of the SMs when run side by side, 0 = none */
    uint64_t memory_quota_bytes;      /* 0 = none */

    HEDDLE_ALIGNED(64) uint64_t yields[HEDDLE_PEER_WORDS]; /* bit n: yield to peer slot n */
    uint64_t corun[HEDDLE_PEER_WORDS];                     /* bit n: may run beside peer slot n */

    HEDDLE_ALIGNED(64)
    uint64_t corun_ns;       /* duration: bound on own outstanding work, as
                                             predicted, while a peer beside which it runs is busy */
    uint64_t min_gap_ns;     /* duration: shorter predicted gaps are not filled */
    uint64_t max_block_ns;   /* duration: launches predicted to be longer are held, 0 = none are */
    uint64_t token_ns;       /* duration: longest time for which the gap token may be kept */
    int32_t stream_priority; /* of streams that the program creates: 1 greatest, -1 least, 0 as
                                the program says */
    uint32_t time_share_ppm; /* share of the device's time that the weight is worth, parts per
                                million: yield points leave it to the client, 0 = none */
    uint32_t keep_ppm;       /* share below which a client with yield points yields to nobody,
                                parts per million, 0 = none */
    uint32_t reserved_keep;
    uint64_t reserved[2];
};

/*
 * One kernel, or one pair of kernels that follow each other, as the daemon knows it from before. The
 * entry of a key is in the first HEDDLE_PROFILE_PROBES places from key >> HEDDLE_PROFILE_SHIFT on,
 * round the end of the table, before any free one. The writer takes the key away while it changes
 * what an entry stands for, and stores the key last (release); it changes values of a key in place.
 * A reader reads the key (acquire), the values, and the key again.
 */
struct heddle_profile_entry {
    HEDDLE_ALIGNED(32) uint64_t key; /* 0 = free */
    uint64_t estimate_ns;            /* duration: predicted device time, 0 = unknown */
    uint64_t gap_ns;  /* duration: predicted idle time that follows, 0 = not predictable */
    uint32_t flags;   /* enum heddle_profile_flags */
    uint32_t sm_need; /* SMs that the kernel fills, 0 = unknown */
};

struct heddle_verdict_segment {
    struct heddle_segment_header header;
    struct heddle_verdict_process process;
    struct heddle_verdict_device devices[HEDDLE_DEVICES_MAX];
    struct heddle_profile_entry profile[HEDDLE_PROFILE_ENTRIES];
};

/* ---- arena: one preemptible class on one device; its clients write, higher ones look ---- */

struct heddle_arena_segment {
    struct heddle_segment_header header;
    /* writers: the member that owns the bit; readers: clients of higher classes */
    HEDDLE_ALIGNED(64) uint64_t sleepers[HEDDLE_PEER_WORDS]; /* bit n: member n sleeps */
    uint64_t reserved_sleepers[4];
    /* writers: members; the gap token */
    HEDDLE_ALIGNED(64)
    uint64_t token_holder; /* who took it last: member index + 1, 0 = given back */
    uint64_t
        token_expiry_ns; /* the lock: who changes it from a time that is over has the token until
                                 the time that it wrote */
    uint64_t reserved_token[6];
    /* writers: the member that owns the place; readers: the other members */
    HEDDLE_ALIGNED(64)
    uint64_t heads[HEDDLE_MEMBERS_MAX]; /* duration: predicted time of member
                                                              n's launch that waits for a gap,
                                                              0 = none waits */
};

HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_segment_header) == 64);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_client_process) == 64);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_client_thread) == 64);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_client_device) == 192);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_client_device, busy_ns) == 64);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_client_device, memory_bytes) == 128);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_log_record) == 128);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_sample_record) == 64);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_kernel_record) == 256);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_trace_record) == 64);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_kernel_record, name) == 80);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_client_segment, devices) == 128);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_client_segment, threads) == 128 + 16 * 192);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_client_segment, samples) == 15488);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_client_segment, trace) == 15488 + 256 * 64 + 256 * 256);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_client_segment) == 97408 + 4096 * 64);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_verdict_process) == 64);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_verdict_device) == 192);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_profile_entry) == 32);
HEDDLE_ASSERT_LAYOUT(1ULL << (64 - HEDDLE_PROFILE_SHIFT) == HEDDLE_PROFILE_ENTRIES);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_verdict_segment, profile) == 128 + 16 * 192);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_verdict_segment) == 128 + 16 * 192 + 2048 * 32);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_arena_segment) == 192 + 256 * 8);

#endif /* HEDDLE_ABI_H */
