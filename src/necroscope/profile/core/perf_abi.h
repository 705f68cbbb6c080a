/* Numbers of the kernel's perf interface (include/uapi/linux/perf_event.h) and of perf.data
 * (tools/lib/perf/include/perf/event.h). */
#ifndef NECROSCOPE_PERF_ABI_H
#define NECROSCOPE_PERF_ABI_H

enum {
  RECORD_MMAP = 1,
  RECORD_LOST = 2,
  RECORD_COMM = 3,
  RECORD_EXIT = 4,
  RECORD_THROTTLE = 5,
  RECORD_FORK = 7,
  RECORD_SAMPLE = 9,
  RECORD_MMAP2 = 10,
  RECORD_LOST_SAMPLES = 13,
  RECORD_KSYMBOL = 17,
  RECORD_CGROUP = 19,
  RECORD_USER_TYPES = 64, /* from here on perf's own */
  HEADER_TRACING_DATA = 66,
  FINISHED_ROUND = 68,
  AUXTRACE = 71,
  HEADER_FEATURE = 80,
  COMPRESSED = 81,
  COMPRESSED2 = 83,
};

enum {
  MISC_CPUMODE = 7,
  MISC_KERNEL = 1,
  MISC_COMM_EXEC = 1 << 13,
  MISC_MMAP_DATA = 1 << 13,
  MISC_FORK_EXEC = 1 << 13,
  MISC_MMAP_BUILD_ID = 1 << 14,
};

#define SAMPLE_IP (1ull << 0)
#define SAMPLE_TID (1ull << 1)
#define SAMPLE_TIME (1ull << 2)
#define SAMPLE_ADDR (1ull << 3)
#define SAMPLE_READ (1ull << 4)
#define SAMPLE_CALLCHAIN (1ull << 5)
#define SAMPLE_ID (1ull << 6)
#define SAMPLE_CPU (1ull << 7)
#define SAMPLE_PERIOD (1ull << 8)
#define SAMPLE_STREAM_ID (1ull << 9)
#define SAMPLE_RAW (1ull << 10)
#define SAMPLE_BRANCH_STACK (1ull << 11)
#define SAMPLE_REGS_USER (1ull << 12)
#define SAMPLE_STACK_USER (1ull << 13)
#define SAMPLE_WEIGHT (1ull << 14)
#define SAMPLE_DATA_SRC (1ull << 15)
#define SAMPLE_IDENTIFIER (1ull << 16)
#define SAMPLE_TRANSACTION (1ull << 17)
#define SAMPLE_REGS_INTR (1ull << 18)
#define SAMPLE_PHYS_ADDR (1ull << 19)
#define SAMPLE_CGROUP (1ull << 21)
#define SAMPLE_WEIGHT_STRUCT (1ull << 24)

#define FORMAT_TOTAL_TIME_ENABLED (1ull << 0)
#define FORMAT_TOTAL_TIME_RUNNING (1ull << 1)
#define FORMAT_ID (1ull << 2)
#define FORMAT_GROUP (1ull << 3)
#define FORMAT_LOST (1ull << 4)

#define BRANCH_HW_INDEX (1ull << 17)
#define BRANCH_COUNTERS (1ull << 19)

/* What follows such a word in a chain lies in the kernel, in a program, in a guest. */
#define CONTEXT_HV (-32ull)
#define CONTEXT_KERNEL (-128ull)
#define CONTEXT_USER (-512ull)
#define CONTEXT_GUEST (-2048ull)
#define CONTEXT_GUEST_KERNEL (-2176ull)
#define CONTEXT_GUEST_USER (-2560ull)
#define CONTEXT_MAX (-4095ull)

/* data_head and data_tail of struct perf_event_mmap_page. */
#define RING_HEAD_OFFSET 1024

#endif
