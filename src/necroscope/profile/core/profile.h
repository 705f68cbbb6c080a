/* From perf records to rows: the data structures of the native core.
 *
 * A record comes from a ring or from a file, waits in the queue until nothing older can follow, and
 * is then replayed in the order of time. Records of tasks change who is who; a sample becomes a
 * row. What a row needs and nobody knows yet (a name, the mappings of a process that is older than
 * we are, the functions of a file) becomes a question. Python answers, and the row is finished.
 *
 *   bytes -----> queue ---> replay ----+--> tasks      tid -> name                      (tasks.c)
 *   (queue.c,    in order  (replay.c)  |    processes  pid -> image, cgroup, parent
 *    records.c,  of time               |    images     mappings by address             (images.c)
 *    events.c)                         |       |         start ..... end, module, shift
 *                                      |       v
 *                                      |    modules    (device, inode, path) or build id
 *                                      |    blocks     (module, offset >> 14) -> functions
 *                                      |    functions  (module, name or offset)     (functions.c)
 *                                      |       |
 *                                      v       v       per segment:
 *                                    rows    frames    frame -> function
 *                          (rows.c, chain.c) nodes     node -> (parent node, frame)    (stacks.c)
 *
 * Beside it: what only files need (captures.c), and the symbols that answers are made of
 * (symbols.c and symbol_table.c for ELF, kallsyms.c). view.h is what Python sees.
 *
 * A node is a caller's node plus one frame, so that all stacks of a segment are one tree:
 *
 *   node      0     1     2         3             parent[3] = 1: `read` was called by `main`
 *   parent   -1     0     1         1
 *   frame    main   work  vfs_read  read
 *
 * Everything that is looked up has one kind of hash table, `struct table` (memory.c). All memory is
 * counted in one account with a limit. What is kept on behalf of a cgroup is charged to it, its
 * tenant: over its share, that tenant's frames become `[bounded]` or lose their offset, and nobody
 * else's do. Nothing here trusts a byte of its input: records are written by the kernel, but paths,
 * chains and mappings in them are chosen by users, and a file may hold anything.
 */
#ifndef NECROSCOPE_PROFILE_H
#define NECROSCOPE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "perf records are read as they are on x86_64 and aarch64: little endian"
#endif

#define PUBLIC __attribute__((visibility("default")))

/* Raised whenever a structure or a function that Python calls changes. */
#define PROFILE_ABI 6

#define NAME_BYTES 16 /* TASK_COMM_LEN */
#define BLOCK_BITS 14 /* functions are asked for by blocks of 16 KiB */
#define BUILD_ID_BYTES 20
#define MOST_FRAMES 8192 /* of one stack: a record holds no more words */
#define MOST_MAPPINGS 4096 /* of one image */
#define MOST_EVENTS 4096
#define MOST_QUESTIONS 4096 /* of one tenant, about its addresses, in one turn */
#define MOST_IDS (1u << 20)
#define MOST_TENANTS (1 << 16)
#define MADE_MODULE 1 /* the module of all code that no file holds */
#define BOUNDED_MODULE 2 /* of mappings whose path there was no room for */
#define NOBODY 0 /* the tenant of what is known of no cgroup */
/* Its functions are everybody's: who fills the share of NOBODY must not cost them their names. */
#define THE_KERNEL 1
/* Who were never asked for their cgroup: they are charged to it as soon as it is known. */
#define STRANGERS 2
#define FIRST_CGROUP 3 /* the tenant of the caller's cgroup 0 */
#define MOST_MODULES (1u << 16)
#define NONE UINT32_MAX
#define ROUND_ENDS 3
#define RECENT_PLACES 4096 /* a power of two */
/* Records of a file without rounds are taken to be in order that far. */
#define MOST_ROUND_BYTES (32u << 20)
#define LEFT_OUT 2 /* of an event: its samples are counted, and nothing else */

/* ---- memory.c -------------------------------------------------------------------------------- */

struct slot {
  uint32_t hash;
  uint32_t entry; /* its number plus one; 0 is a free slot */
};

struct table {
  struct slot *slots;
  uint32_t capacity; /* a power of two, or 0 */
  uint32_t count;
};

struct tenant {
  uint64_t charged_bytes;
  uint64_t block_bytes; /* of it in blocks of functions */
  uint32_t modules;
  uint32_t questions; /* about its addresses, in this turn */
  uint32_t nodes; /* of this segment */
  uint32_t unnamed; /* functions without a name, of this segment */
  uint32_t tasks; /* threads and processes, as of the last time they were counted */
  uint32_t bounded; /* frames that its bound cost it, since they were last reported */
};

struct text {
  char *bytes;
  size_t length, capacity;
};

/* ---- records.c ------------------------------------------------------------------------------- */

/* How samples of one event look: struct perf_event_attr, as far as it decides that. */
struct event {
  uint64_t sample_type, read_format, branch_sample_type, user_registers, interrupt_registers;
  /* The instruction pointer's number among user registers; 64 if there is none. */
  uint32_t ip_register;
  /* Its samples are not of stacks: Python reads them; LEFT_OUT: nobody wants them. */
  uint32_t is_passed_on;
};

struct event_id {
  uint64_t id;
  uint32_t event;
};

struct waiting {
  uint64_t time, sequence;
  uint64_t at; /* in the queue's bytes */
  int32_t cpu;
};

struct queue {
  uint8_t *bytes;
  size_t length, capacity;
  struct waiting *records;
  size_t count, records_capacity;
  size_t done; /* of `count`: replayed, and not yet moved away */
  bool is_sorted;
  struct waiting *spare; /* for sorting */
  size_t spare_capacity;
};

/* What was met of an event: samples queued, and those within the window of which no rows are
 * wanted. */
struct event_counts {
  uint64_t queued, left_out;
};

/* A sample taken apart; `chain` points into the record, and `extra` is added behind it. */
struct sample {
  uint64_t time, cgroup_id, argument;
  int32_t pid, tid, cpu;
  uint32_t event;
  bool has_argument;
  const uint8_t *chain;
  uint32_t length; /* in words */
  uint64_t extra[2];
  uint32_t extra_length;
};

/* ---- tasks.c, images.c ----------------------------------------------------------------------- */

struct mapping {
  uint64_t start, end; /* addresses, end excluded */
  uint64_t shift; /* address - shift is the offset in the file */
  uint32_t module;
};

struct image {
  /* That hold it: those that share it after a fork, and those that wait for answers. */
  uint32_t processes, rows;
  uint32_t serial; /* never given twice */
  uint32_t tenant;
  uint32_t count, capacity;
  bool is_complete; /* its exec was seen, or its mappings were asked for */
  uint32_t asked_turn; /* what is not answered in its turn is asked for again in the next */
  bool is_bounded; /* there are more mappings than are kept */
  bool is_visited; /* while modules get new numbers */
  struct mapping *mappings;
};

struct task {
  int32_t tid, pid;
  bool has_name;
  char name[NAME_BYTES];
  uint32_t next_free, exit_turn, asked_turn;
};

struct process {
  int32_t pid, parent;
  int32_t cgroup; /* the caller's number; -1 is unknown */
  bool is_cgroup_known;
  struct image *image;
  uint32_t next_free, exit_turn, asked_turn;
};

struct exited {
  int32_t pid, tid;
};

/* ---- modules.c, functions.c ------------------------------------------------------------------ */

enum module_kind { MODULE_KERNEL, MODULE_FILE, MODULE_MADE, MODULE_BOUNDED };

struct module {
  uint32_t kind, tenant;
  uint32_t major, minor;
  uint64_t inode;
  uint8_t build_id[BUILD_ID_BYTES];
  uint32_t build_id_length;
  uint32_t path_length;
  uint64_t path; /* in `text` */
  uint32_t number; /* while modules get new ones */
  /* The function that stands for all places beyond the bound; NONE until there is one. */
  uint32_t no_offset;
};

/* One allocation: the functions met so far (NONE until one is), where each name ends in the text,
 * where each function begins. */
struct block {
  uint64_t number;
  uint32_t module, tenant;
  uint32_t count;
  uint32_t size_bytes;
  uint32_t asked_turn;
  bool is_known; /* else asked for, and not answered yet */
  bool is_bounded; /* answered, and its tenant had no room for the answer */
  uint32_t *functions;
  uint32_t *name_ends;
  uint16_t *starts;
  char *names;
};

/* Which function lies at a place of a module. */
struct recent {
  uint64_t offset;
  uint32_t module, function;
};

enum function_kind {
  FUNCTION_KERNEL,
  FUNCTION_USER,
  FUNCTION_JIT,
  FUNCTION_UNKNOWN,
  FUNCTION_GUEST,
  FUNCTION_BOUNDED,
  FUNCTION_GIVEN /* a name that Python keeps: `offset` is its number there */
};

struct function {
  uint32_t module, kind;
  uint32_t name_length; /* 0: it has none, and `offset` says where it is */
  int32_t frame; /* its number in this segment, -1 before it has one */
  uint64_t name; /* in `text` */
  uint64_t offset;
  uint32_t tenant;
  bool is_idle, has_offset;
};

/* Code that no file holds, made at run time: known address by address, within one image. */
struct place {
  uint64_t address;
  uint32_t image; /* serial */
  uint32_t tenant;
  uint32_t function; /* NONE: asked for */
  uint32_t asked_turn;
};

/* ---- replay.c -------------------------------------------------------------------------------- */

enum question_kind { ASK_NAME = 1, ASK_CGROUP, ASK_MAPPINGS, ASK_BLOCK, ASK_PLACE };

struct question {
  uint32_t kind;
  int32_t pid, tid, parent;
  uint32_t module; /* of ASK_PLACE the image's serial */
  uint32_t reserved;
  uint64_t where; /* the block's number, or the address */
  uint64_t first, last; /* blocks of the whole mapping */
};

/* A row whose stack waits for answers. */
struct pending {
  struct image *image;
  uint32_t row, event;
  int32_t pid;
  uint32_t tenant;
  size_t words; /* in `pending_words` */
  uint32_t length;
};

/* Rows of `samples`, one array per column. Names and cgroups are numbers into the lists of this
 * turn. */
struct rows {
  int64_t *time;
  int16_t *cpu;
  int32_t *pid, *tid, *name, *cgroup, *stack, *event;
  uint64_t *cgroup_id, *argument;
  uint8_t *has_argument;
  uint8_t *has_cgroup; /* a bitmap, as Arrow has it; complete after the turn */
  uint32_t count, capacity, without_cgroup;
  uint32_t capacities[12]; /* of each column; `capacity` is the least of them */
};

struct profile {
  uint64_t used_bytes, limit_bytes, tenant_limit_bytes;
  uint32_t tenant_nodes, tenant_unnamed, most_nodes;
  struct tenant *tenants;
  uint32_t tenant_count;
  struct text text;
  char idle_names[4096]; /* each ends with a zero */
  uint32_t idle_names_length;

  struct event *events;
  struct event_counts *event_counts;
  uint32_t event_count;
  struct table event_ids;
  struct event_id *ids;
  uint32_t id_count, id_capacity, event_capacity, event_counts_capacity;
  bool has_trailer, has_time;
  bool asks; /* there is a /proc to ask about processes: a live recording, not a file */
  struct queue queue;
  uint64_t sequence;

  struct table task_table, process_table;
  struct task *tasks;
  struct process *processes;
  uint32_t task_count, task_capacity, task_free, process_count, process_capacity, process_free;
  struct exited *exited;
  uint32_t exited_count, exited_capacity;
  bool has_refused_tasks; /* since the last turn ended */
  uint32_t turn, image_serial;

  struct table module_table, block_table, function_table, place_table;
  bool is_module_refused;
  struct module *modules;
  struct block **blocks;
  struct recent recent[RECENT_PLACES];
  uint64_t block_bytes;
  struct function *functions;
  struct place *places;
  uint32_t module_count, module_capacity, block_count, block_capacity, function_count,
      function_capacity, place_count, place_capacity;
  uint32_t unknown, guest, bounded; /* functions that are always there */

  struct table node_table;
  int32_t *parents, *node_frames;
  uint32_t node_count, parents_capacity, node_frames_capacity;
  uint32_t *frames; /* frame -> function */
  uint32_t frame_count, frame_capacity;

  struct rows rows;
  struct table name_table;
  char *names;
  uint32_t name_count, name_capacity;
  int32_t *cgroups;
  uint32_t cgroup_count, cgroup_capacity;
  struct table cgroup_table;
  struct pending *pending;
  uint32_t pending_count, pending_capacity;
  uint64_t *pending_words;
  size_t pending_words_count, pending_words_capacity;
  struct question *questions;
  uint32_t question_count, question_capacity;
  uint8_t *passed_on;
  size_t passed_on_length, passed_on_capacity;
  int64_t offset_ns, first_ns, last_ns; /* of this turn's samples, idle ones among them */
  uint64_t turn_samples;
  uint32_t turn_records; /* at most these in a turn; 0: all */
  /* The latest time at the end of each of the last rounds. */
  uint64_t round_ends[ROUND_ENDS], round_bytes;
  uint64_t window_from, window_to;

  uint64_t latest_ns, samples, idle, malformed, refused, cut, rounds, bounded_frames;
};

typedef struct profile profile;

#include "view.h"
#include "calls.h"

#endif
