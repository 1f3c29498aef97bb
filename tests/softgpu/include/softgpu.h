/* The software GPU's mapped state file: one file is one simulated node.
 *
 * Every process that opens the software driver maps this file; so do NVML, the `softgpu` tool and
 * tests. All pending work of all processes lies here, so that whoever enters can move the device
 * model forward to "now"; no server is needed. Guarded fields change only under `lock` (see
 * state.h); fields marked "atomic" are read without it.
 *
 * Layout rules: fixed-width members, no pointers, constants as enums, natural alignment, every
 * offset that another language depends on asserted below. Times are nanoseconds of simulated time
 * since `epoch_ns` (see docs/device-model.md). Doubles are IEEE 754 binary64.
 */
#ifndef SOFTGPU_H
#define SOFTGPU_H

#include <stddef.h>
#include <stdint.h>

enum softgpu_limits {
    SOFTGPU_MAGIC = 0x55504753, /* "SGPU" */
    SOFTGPU_VERSION = 2,
    SOFTGPU_MAX_DEVICES = 16,  /* physical GPUs */
    SOFTGPU_MAX_UNITS = 144,   /* schedulable devices: a GPU, or a MIG compute instance of one */
    SOFTGPU_MIG_IDS = 15,      /* ids that a device's GPU instances can have */
    SOFTGPU_MIG_INSTANCES = 8, /* most GPU instances of a device, and compute instances of one */
    SOFTGPU_MAX_PROCS = 1024,
    SOFTGPU_MAX_CONTEXTS = 2048,
    SOFTGPU_MAX_STREAMS = 8192,
    SOFTGPU_MAX_OPS = 65536,
    SOFTGPU_MAX_TALLIES = 8192, /* per-thread launch counters */
    SOFTGPU_MAX_FAULTS = 32,
    SOFTGPU_MAX_STUBS = 1024,
    SOFTGPU_NAME_BYTES = 64,
    SOFTGPU_STREAM_DEPTH = 1024, /* pending operations of one stream; the next launch waits */
    SOFTGPU_MARKS = 20,
    SOFTGPU_MARK_NS = 20000000, /* the marks of a unit reach back at least 10 times this */
    SOFTGPU_QUEUES = 4
};

/* "No index" in every table. */
static const uint32_t SOFTGPU_NONE = 0xffffffffu;

/* More than one, where an index says which one. */
static const uint32_t SOFTGPU_SEVERAL = 0xfffffffeu;

enum softgpu_profile {
    SOFTGPU_PROFILE_REAL_LIKE = 0, /* launch 2.5 us, synchronisation 8 us */
    SOFTGPU_PROFILE_NULL = 1       /* everything costs nothing and runs in the caller */
};

enum softgpu_slot_state {
    SOFTGPU_SLOT_FREE = 0,
    SOFTGPU_SLOT_CLAIMED = 1, /* being filled; recovered as if dead when its owner is gone */
    SOFTGPU_SLOT_USED = 2
};

enum softgpu_proc_flags {
    SOFTGPU_PROC_MPS = 1 /* a client of the MPS server of its devices */
};

enum softgpu_context_flags { SOFTGPU_CONTEXT_PRIMARY = 1, SOFTGPU_CONTEXT_MPS = 2 };

enum softgpu_stream_flags {
    SOFTGPU_STREAM_NONBLOCKING = 1, /* does not wait for the legacy stream, nor it for this one */
    SOFTGPU_STREAM_LEGACY = 2       /* the context's default stream of the old kind */
};

enum softgpu_op_kind {
    SOFTGPU_OP_NONE = 0,
    SOFTGPU_OP_KERNEL = 1,
    SOFTGPU_OP_COPY = 2, /* occupies the copy queue `queue` for `work_ns` */
    SOFTGPU_OP_MARK = 3, /* completes as soon as it is at the head: events, no-ops */
    SOFTGPU_OP_WAIT = 4, /* waits until stream `dep_stream` has completed `dep_pos` */
    SOFTGPU_OP_HOST = 5  /* waits until the owner has run something on the host */
};

enum softgpu_op_state {
    SOFTGPU_OP_FREE = 0,
    SOFTGPU_OP_CLAIMED = 1, /* being filled */
    SOFTGPU_OP_QUEUED = 2,  /* in its stream, not yet at the head or not yet allowed */
    SOFTGPU_OP_READY = 3,   /* at the head and allowed: waits for SMs or for a queue, or runs */
    SOFTGPU_OP_ASKED = 4,   /* HOST: given to the owner, which has not answered yet */
    SOFTGPU_OP_DONE = 5     /* finished; in the owner's list of completions */
};

enum softgpu_queue {
    SOFTGPU_QUEUE_H2D = 0,
    SOFTGPU_QUEUE_D2H = 1,
    SOFTGPU_QUEUE_D2D = 2 /* device to device and memset, at the speed of device memory */
};

enum softgpu_mig_mode { SOFTGPU_MIG_DISABLED = 0, SOFTGPU_MIG_ENABLED = 1 };

/* Counters of API use; indexes of softgpu_proc.calls and softgpu_header.calls. */
enum softgpu_counter {
    SOFTGPU_COUNT_LAUNCH = 0, /* kernels launched; plus the tallies */
    SOFTGPU_COUNT_OPAQUE = 1, /* of these: without a known effect */
    SOFTGPU_COUNT_GRAPH = 2,  /* graph launches */
    SOFTGPU_COUNT_COPY = 3,
    SOFTGPU_COUNT_COPY_BYTES = 4,
    SOFTGPU_COUNT_MEMSET = 5,
    SOFTGPU_COUNT_SYNC = 6,  /* stream, event and context synchronisations */
    SOFTGPU_COUNT_QUERY = 7, /* event and stream queries */
    SOFTGPU_COUNT_EVENT_RECORD = 8,
    SOFTGPU_COUNT_ALLOC = 9,
    SOFTGPU_COUNT_FREE = 10,
    SOFTGPU_COUNT_HOST = 11,  /* host functions */
    SOFTGPU_COUNT_STUB = 12,  /* calls of names that are not implemented */
    SOFTGPU_COUNT_FAULT = 13, /* injected faults that struck */
    SOFTGPU_COUNTERS = 16
};

enum softgpu_fault_flags {
    SOFTGPU_FAULT_STICKY = 1, /* the context (under MPS: every client of the server) is lost */
    SOFTGPU_FAULT_ALWAYS = 2, /* strikes every time from `after` on, not `times` */
    SOFTGPU_FAULT_RANDOM = 4, /* strikes with `probability` per call, from `seed` */
    SOFTGPU_FAULT_LATE = 8,   /* of NVML's changes: strikes when the change is made */
    SOFTGPU_FAULT_KILL = 16   /* the caller is killed there */
};

/* A MIG compute instance; with its GPU instance it is a MIG device. Its id is its place. Guarded. */
struct softgpu_mig_compute {
    uint32_t state;   /* enum softgpu_slot_state */
    uint32_t profile; /* id */
    uint32_t start;   /* compute slices within the GPU instance */
    uint32_t size;
    uint32_t unit; /* what its clients run on */
    uint32_t sm_count;
    uint8_t uuid[16]; /* of the MIG device */
    uint64_t serial;  /* of all instances ever made on this node: ids come again, this does not */
};

/* A MIG GPU instance. Its id is its place in the device's table. Guarded. */
struct softgpu_mig_instance {
    uint32_t state;   /* enum softgpu_slot_state */
    uint32_t profile; /* id */
    uint32_t start;   /* memory slices */
    uint32_t size;
    uint64_t memory_bytes;
    uint64_t serial;
    struct softgpu_mig_compute compute[SOFTGPU_MIG_INSTANCES];
};

/* A GPU. Constant after creation, except the lines that name NVML or the lock. */
struct softgpu_device {
    char model[SOFTGPU_NAME_BYTES];   /* key of the model table: "H100-80" */
    char product[SOFTGPU_NAME_BYTES]; /* "NVIDIA H100 80GB HBM3" */
    uint8_t uuid[16];
    uint32_t pci_domain;
    uint32_t pci_bus;
    uint32_t pci_device;
    uint32_t minor;
    uint64_t memory_bytes;   /* total */
    uint64_t reserved_bytes; /* of these: not available to programs */
    uint64_t used_bytes;     /* sum over the processes; guarded */
    uint32_t unit;           /* its schedulable unit while MIG is off */
    uint32_t mig_mode;       /* enum softgpu_mig_mode; guarded, set through NVML */
    uint32_t mig_pending;
    uint32_t compute_mode; /* CUDA's number; guarded, set through NVML */
    uint32_t lost;         /* fallen off the bus: every call answers so; guarded */
    uint32_t mps;          /* new processes are clients of a MPS server; guarded */
    uint64_t
        mig_changes; /* atomic: +1 before and after every change of the lines above and below */
    uint64_t reserved[31];
    struct softgpu_mig_instance mig[SOFTGPU_MIG_IDS]; /* guarded */
};

/* A reading of a unit's integrals. */
struct softgpu_mark {
    int64_t at_ns;
    uint64_t busy_ns;
    uint64_t memory_ns;
    uint64_t h2d_ns;
    uint64_t d2h_ns;
};

/* What the device model schedules on. All guarded, except `next_event_ns` (atomic). */
struct softgpu_unit {
    uint32_t state; /* enum softgpu_slot_state */
    uint32_t device;
    uint32_t sm_count;
    uint32_t instance; /* MIG GPU instance id, or SOFTGPU_NONE: the whole GPU */
    double bytes_per_ns[SOFTGPU_QUEUES];
    uint64_t memory_bytes; /* available to programs: the capacity that allocations are held to */
    uint64_t used_bytes;

    int64_t now_ns;        /* the model is exact up to here; progress counts from here */
    int64_t next_event_ns; /* atomic: nothing changes before this unless someone submits */

    /* Time slicing. A group is a context, or all MPS clients of the unit together. */
    uint32_t current_group; /* SOFTGPU_NONE: nobody ran yet */
    uint32_t switch_target; /* group being switched to, or SOFTGPU_NONE */
    int64_t switch_end_ns;
    int64_t quantum_end_ns;
    int64_t quantum_ns;
    int64_t switch_ns;

    uint64_t next_arrival;                      /* order in which operations became ready */
    uint32_t queue_op[SOFTGPU_QUEUES];          /* the copy that runs */
    uint64_t streams[SOFTGPU_MAX_STREAMS / 64]; /* bitmap: streams of this unit with work */

    /* Integrals for utilisation, in simulated time; guarded, exact up to now_ns. */
    uint64_t busy_ns; /* at least one kernel held an SM */
    uint64_t sm_ns;   /* SMs held x time */
    uint64_t copy_ns[SOFTGPU_QUEUES];
    uint64_t memory_ns; /* active DRAM fraction x time */
    uint64_t kernels;   /* completed */
    uint64_t switches;  /* context switches */
    uint32_t mark_next; /* where the next mark goes; the newest is the one before */
    uint32_t pad;
    struct softgpu_mark marks[SOFTGPU_MARKS]; /* a ring, for utilisation over a window */
    uint32_t compute;                         /* MIG compute instance id, or SOFTGPU_NONE */
    uint32_t copy_engines; /* 1: both directions share one; 0: as the model has them */
    uint64_t reserved[15];
};

/* A process that has called cuInit. `state` and `pid` are atomic; the rest is guarded, except the
 * counters and `wake`, which are atomic. The slot's owner holds a lock on byte
 * SOFTGPU_LOCK_BASE + index of the state file (open file description lock): free means dead. */
struct softgpu_proc {
    uint32_t state;
    uint32_t pid;        /* in the owner's own PID namespace */
    uint64_t pid_ns;     /* inode of that namespace */
    uint64_t generation; /* +1 for every owner of the slot */
    uint64_t started_ns;
    uint32_t flags; /* enum softgpu_proc_flags */
    uint32_t uid;
    uint32_t sm_percent; /* MPS active thread percentage, 100 without */
    uint32_t wake;       /* atomic futex word: +1 when something for this process happened */
    uint32_t done_head;  /* atomic: finished operations, oldest first */
    uint32_t done_tail;
    char name[SOFTGPU_NAME_BYTES]; /* of the executable */
    uint64_t used_bytes[SOFTGPU_MAX_UNITS];
    uint32_t contexts[SOFTGPU_MAX_UNITS];
    uint64_t sm_ns[SOFTGPU_MAX_UNITS]; /* SMs held x time */
    uint64_t calls[SOFTGPU_COUNTERS];  /* atomic */
    uint32_t opened;       /* devices that it has open, a bit each: their mode stays as it is */
    uint32_t mig_device;   /* of the instance that it holds, or SOFTGPU_NONE */
    uint32_t mig_instance; /* the GPU instance */
    uint32_t mig_compute;  /* the compute instance, or SOFTGPU_NONE: only the other is held */
    uint64_t reserved[14];
};

/* A CUDA context. Guarded; `error` is atomic. */
struct softgpu_context {
    uint32_t state;
    uint32_t proc;
    uint32_t unit;
    uint32_t flags;  /* enum softgpu_context_flags */
    uint32_t sm_cap; /* SMs that its kernels together may hold; a MPS percentage makes it smaller */
    uint32_t error;  /* CUresult of the fatal fault that took it, 0 while it lives */
    uint32_t legacy_stream; /* SOFTGPU_NONE until made */
    uint32_t pad;
    uint64_t generation;
    uint64_t reserved[3];
};

/* A CUDA stream. Guarded; `done_pos` is atomic. Appended to by its owner, popped by anyone. */
struct softgpu_stream {
    uint32_t state;
    uint32_t proc;
    uint32_t context;
    uint32_t unit;
    uint32_t flags;   /* enum softgpu_stream_flags */
    int32_t priority; /* CUDA's: the smaller, the sooner */
    uint32_t head;
    uint32_t tail;
    uint32_t depth;      /* operations not done */
    uint32_t watch_unit; /* another unit with a wait on it, SEVERAL, or NONE */
    uint64_t generation; /* +1 when the slot is given back: waits on it are over */
    uint64_t last_pos;   /* position of the youngest operation; the first has 1 */
    uint64_t done_pos;   /* all up to here are done */
    int64_t done_ns;     /* when the last of them was done */
    double queued_ns;    /* time alone of what is queued: a lower bound of the time to empty */
    uint64_t reserved[4];
};

/* One operation. Written by its owner until QUEUED, then by whoever holds the lock. */
struct softgpu_op {
    uint32_t state; /* enum softgpu_op_state */
    uint32_t kind;  /* enum softgpu_op_kind */
    uint32_t stream;
    uint32_t proc;
    uint32_t context;
    uint32_t unit;
    uint32_t next; /* in its stream, then in the owner's completions */
    uint32_t queue;
    uint64_t seq;    /* order of submission over the node */
    uint64_t pos;    /* position in its stream */
    uint64_t cookie; /* the owner's word; means nothing to others */
    double work_ns;  /* T: time alone */
    double dram;     /* m: fraction of the memory bandwidth that it uses alone */
    double progress; /* 0 to 1, exact up to the unit's now_ns */
    double boundary; /* progress at which the present wave ends */
    double rate;     /* 1 is the speed alone */
    uint32_t need;   /* n: SMs that the whole grid fills once */
    uint32_t waves;  /* ceil(n / SMs) */
    uint32_t want;   /* min(n, SMs): what it holds alone */
    uint32_t held;   /* a: what it holds now */
    uint64_t arrived;
    int64_t start_ns;
    int64_t end_ns;
    uint32_t dep_stream;
    uint32_t pad;
    uint64_t dep_generation;
    uint64_t dep_pos;
    uint64_t reserved[2];
};

struct softgpu_fault {
    uint32_t armed;                 /* atomic: 1 while it may strike */
    uint32_t flags;                 /* enum softgpu_fault_flags */
    uint32_t result;                /* CUresult or nvmlReturn_t to answer; 0: as without */
    uint32_t pid;                   /* 0: any process */
    char entry[SOFTGPU_NAME_BYTES]; /* exported name; "*" for any of CUDA, "nvml*" of NVML */
    uint64_t after;                 /* calls that pass first */
    uint64_t times;                 /* that it strikes; 0 is 1 */
    uint64_t delay_ns;              /* real time that a struck call takes longer */
    uint32_t device;                /* NVML: 1 + index of the GPU, 0: any */
    uint32_t pad;
    uint64_t calls; /* atomic: calls seen */
    uint64_t hits;  /* atomic */
    uint64_t seed;
    double probability;
};

struct softgpu_stub {
    char name[SOFTGPU_NAME_BYTES]; /* an exported name that is not implemented; set once */
    uint64_t calls;                /* atomic */
};

/* A thread's launches; a line of its own, written by that thread only. */
struct softgpu_tally {
    uint32_t proc; /* owner, or SOFTGPU_NONE; atomic */
    uint32_t pad;
    uint64_t launches;
    uint64_t opaque;
    uint64_t reserved[5];
};

struct softgpu_header {
    uint32_t magic;
    uint32_t version;
    uint64_t size;     /* of the file */
    uint64_t epoch_ns; /* CLOCK_MONOTONIC at creation */
    double speed;      /* simulated seconds per real second */
    uint32_t profile;  /* enum softgpu_profile */
    uint32_t device_count;
    uint32_t driver_version;          /* as cuDriverGetVersion answers: 13030 */
    uint32_t ready;                   /* atomic: 1 when the file is complete */
    double launch_ns;                 /* cost of a launch on the calling thread */
    double sync_ns;                   /* from completion to the return of a waiting call */
    uint64_t lock[8];                 /* a process-shared robust mutex of the C library */
    uint64_t repairs;                 /* times that a holder of the lock had died; guarded */
    uint64_t reaped;                  /* processes found dead; guarded */
    uint64_t next_seq;                /* guarded */
    uint32_t unit_count;              /* units in use are below this; guarded */
    uint32_t faults_armed;            /* atomic: number of armed faults */
    int64_t reap_ns;                  /* when the dead were last looked for; guarded */
    uint64_t calls[SOFTGPU_COUNTERS]; /* of processes that are gone; guarded */
    uint32_t op_free;                 /* chain of free operations by `next`; guarded */
    uint32_t op_high; /* operations ever used: scans end here; guarded, as the next three */
    uint32_t stream_high;
    uint32_t context_high;
    uint32_t proc_high;
    uint32_t caps_stale; /* the folder of MIG capabilities is not up to date; guarded */
    uint64_t mig_serial; /* of the youngest MIG instance; guarded */
    uint64_t boots;      /* times that the node was booted again; guarded */
    uint64_t reserved[14];
};

struct softgpu_state {
    struct softgpu_header header;
    struct softgpu_tally tallies[SOFTGPU_MAX_TALLIES];
    struct softgpu_device devices[SOFTGPU_MAX_DEVICES];
    struct softgpu_unit units[SOFTGPU_MAX_UNITS];
    struct softgpu_fault faults[SOFTGPU_MAX_FAULTS];
    struct softgpu_stub stubs[SOFTGPU_MAX_STUBS];
    struct softgpu_proc procs[SOFTGPU_MAX_PROCS];
    struct softgpu_context contexts[SOFTGPU_MAX_CONTEXTS];
    struct softgpu_stream streams[SOFTGPU_MAX_STREAMS];
    struct softgpu_op ops[SOFTGPU_MAX_OPS];
};

/* Byte of the state file that slot 0's owner locks; far beyond the content. */
static const uint64_t SOFTGPU_LOCK_BASE = 1ull << 40;

#ifndef __cplusplus
_Static_assert(sizeof(struct softgpu_header) == 448, "header");
_Static_assert(sizeof(struct softgpu_device) == 6704, "device");
_Static_assert(offsetof(struct softgpu_device, memory_bytes) == 160, "device.memory_bytes");
_Static_assert(sizeof(struct softgpu_op) == 176, "op");
_Static_assert(sizeof(struct softgpu_stream) == 112, "stream");
_Static_assert(sizeof(struct softgpu_context) == 64, "context");
_Static_assert(sizeof(struct softgpu_tally) == 64, "tally");
_Static_assert(offsetof(struct softgpu_unit, now_ns) == 64, "unit.now_ns");
_Static_assert(offsetof(struct softgpu_proc, used_bytes) == 120, "proc.used_bytes");
_Static_assert(offsetof(struct softgpu_state, tallies) % 64 == 0, "a tally is one cache line");
#endif

#endif /* SOFTGPU_H */
