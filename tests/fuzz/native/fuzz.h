/* What the parts of the native core's fuzz target share: bytes of the input as numbers, and records
 * as the kernel would write them. */
#ifndef NECROSCOPE_FUZZ_H
#define NECROSCOPE_FUZZ_H

/* The core is compiled with these under other names, so that they can fail (main.c). */
#undef malloc
#undef realloc
#undef calloc

#include "perf_abi.h"
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RECORD_BYTES 4096

/* The public side of the core, as profile/library.py declares it. */
struct limits {
  uint64_t limit_bytes, tenant_limit_bytes;
  uint32_t tenant_nodes, tenant_unnamed, most_nodes;
  uint32_t asks, has_time, has_trailer;
};

profile *profile_new(const struct limits *limits, const char *idle_names,
                     uint32_t idle_names_length);
int profile_add_event(profile *p, const struct event *event);
int profile_add_id(profile *p, uint64_t id, uint32_t event);
void profile_leave_out(profile *p, uint32_t event);
int profile_event_counts(const profile *p, uint32_t event, struct event_counts *counts);
uint64_t profile_feed(profile *p, const uint8_t *bytes, uint64_t length, int32_t cpu);
void profile_drain(profile *p, const struct ring *rings, uint32_t count);
uint64_t profile_scan(profile *p, const uint8_t *bytes, uint64_t length, uint64_t *span);
uint64_t profile_skip(const uint8_t *bytes, uint64_t length);
uint64_t profile_earliest(profile *p);
uint64_t profile_safe_until(const profile *p, uint32_t is_late);
uint64_t profile_turn_span(const profile *p, int64_t *span);
void profile_limit_turn(profile *p, uint32_t records);
int profile_count_marks(profile *p, const uint64_t *marks, uint32_t mark_count,
                        const int32_t *stacks, const int32_t *weights, uint32_t count,
                        uint64_t *sets, uint64_t *counts);
uint32_t profile_frames(const profile *p, uint32_t first, uint32_t count,
                        struct frame_view *frames);
const char *profile_text(const profile *p, uint64_t *length);
void profile_start_capture(profile *p, uint32_t has_time, uint32_t has_trailer);
void profile_intern_stacks(profile *p, const uint32_t *given, const uint32_t *lengths,
                           uint32_t count, int32_t *nodes);
void profile_window(profile *p, uint64_t from_ns, uint64_t to_ns);
void profile_replay(profile *p, uint64_t until_ns, int64_t offset_ns);
uint32_t profile_resume(profile *p, uint32_t is_forced);
void profile_finish(profile *p);
void profile_view(const profile *p, struct view *view);
int profile_module(const profile *p, uint32_t number, struct module_view *view);
void profile_begin_mappings(profile *p, int32_t pid);
void profile_end_mappings(profile *p, int32_t pid, uint32_t is_bounded);
void profile_set_name(profile *p, int32_t tid, const char *name, uint64_t length);
void profile_set_cgroup(profile *p, int32_t pid, int32_t cgroup);
int profile_learn_block(profile *p, uint32_t module, uint64_t number, uint32_t count,
                        const uint16_t *starts, const uint32_t *name_ends, const char *names,
                        uint64_t names_bytes);
void profile_learn_place(profile *p, uint32_t image, uint64_t address, const char *name,
                         uint64_t length);
void profile_forget_block(profile *p, uint32_t module, uint64_t number);
void profile_forget_cgroups(profile *p);
int profile_start_segment(profile *p, uint32_t most_functions);
uint32_t profile_take_bounded(profile *p, int32_t *cgroups, uint32_t *counts, uint32_t most);

/* Ends the run, also where assert() is compiled out. */
#define MUST(condition)                                                          \
  do {                                                                           \
    if (!(condition)) {                                                          \
      fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                   \
    }                                                                            \
  } while (0)

/* ---- the input ------------------------------------------------------------------------------- */

struct input {
  const uint8_t *at, *end;
};

static inline uint64_t number(struct input *input, uint32_t bytes) {
  uint64_t value = 0;
  size_t left = (size_t)(input->end - input->at), taken = bytes < left ? bytes : left;
  if (taken != 0) memcpy(&value, input->at, taken);
  input->at += taken;
  return value;
}

static inline uint8_t byte(struct input *input) { return (uint8_t)number(input, 1); }

static inline uint32_t below(struct input *input, uint32_t most) { return byte(input) % most; }

/* Numbers at which code goes wrong, small ones, and any. */
static inline uint64_t wild(struct input *input) {
  static const uint64_t edges[] = {0,         1,          UINT16_MAX,     INT32_MAX, UINT32_MAX,
                                   INT64_MAX, 1ull << 63, UINT64_MAX - 1, UINT64_MAX};
  uint8_t choice = byte(input);
  if (choice < 32) return edges[choice % 9];
  if (choice < 160) return number(input, 1);
  return choice < 200 ? number(input, 2) : number(input, 8);
}

/* Few processes, so that records meet. */
static inline int32_t some_pid(struct input *input) {
  uint8_t choice = byte(input);
  return choice < 250 ? choice % 12 : choice < 253 ? -1 : (int32_t)wild(input);
}

/* Addresses in a few small stretches, at which mappings are put, and any. */
static inline uint64_t some_address(struct input *input) {
  uint8_t choice = byte(input);
  return choice < 240 ? 0x400000ull + (choice % 16) * 0x3000ull + number(input, 1) * 16
                      : wild(input);
}

/* ---- records --------------------------------------------------------------------------------- */

struct record {
  uint8_t bytes[MOST_RECORD_BYTES];
  uint32_t size;
};

static inline void start_record(struct record *record, uint32_t kind, uint16_t misc) {
  memset(record->bytes, 0, 8);
  memcpy(record->bytes, &kind, 4);
  memcpy(record->bytes + 4, &misc, 2);
  record->size = 8;
}

static inline void put(struct record *record, const void *bytes, uint32_t size) {
  if (size > sizeof record->bytes - 256 - record->size) return;
  memcpy(record->bytes + record->size, bytes, size);
  record->size += size;
}

static inline void put_word(struct record *record, uint64_t word) { put(record, &word, 8); }

static inline void put_pair(struct record *record, int32_t one, int32_t other) {
  put(record, &one, 4);
  put(record, &other, 4);
}

static inline void put_text(struct record *record, const char *text, size_t length) {
  static const char zeros[8];
  put(record, text, (uint32_t)length);
  put(record, zeros, 8 - (uint32_t)length % 8);
}

static inline void end_record(struct record *record) {
  uint16_t size = (uint16_t)record->size;
  memcpy(record->bytes + 6, &size, 2);
}

/* struct sample_id behind a record that is no sample. */
static inline void put_trailer(struct record *record, uint64_t type, int32_t pid, int32_t tid,
                               uint64_t time, uint64_t id, uint32_t cpu) {
  if (type & SAMPLE_TID) put_pair(record, pid, tid);
  if (type & SAMPLE_TIME) put_word(record, time);
  if (type & SAMPLE_ID) put_word(record, id);
  if (type & SAMPLE_STREAM_ID) put_word(record, id);
  if (type & SAMPLE_CPU) put_word(record, cpu);
  if (type & SAMPLE_IDENTIFIER) put_word(record, id);
}

/* ---- checks.c, program.c, tenants.c, symbols.c ----------------------------------------------- */

extern uint64_t allocations_left; /* until one fails; UINT64_MAX: none does */

void check(const profile *p);
void check_rows(const profile *p);
void run_program(struct input *input);
void run_tenants(struct input *input);
void run_symbols(struct input *input);
void run_kallsyms(struct input *input);
void run_numbers(struct input *input);
int run_input(const uint8_t *bytes, size_t size);

#endif
