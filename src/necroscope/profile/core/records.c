/* Records as the kernel writes them (include/uapi/linux/perf_event.h), taken apart. */
#include "profile.h"
#include "perf_abi.h"

#include <string.h>

static uint64_t word_at(const uint8_t *bytes) {
  uint64_t word;
  memcpy(&word, bytes, 8);
  return word;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Words from the header to a field of one word before the first of variable size; 0 if it is not
 * there. */
static uint32_t head_position(uint64_t sample_type, uint64_t field) {
  static const uint64_t order[] = {SAMPLE_IDENTIFIER, SAMPLE_IP,   SAMPLE_TID,
                                   SAMPLE_TIME,       SAMPLE_ADDR, SAMPLE_ID,
                                   SAMPLE_STREAM_ID,  SAMPLE_CPU,  SAMPLE_PERIOD};
  uint32_t position = 1;
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    if (order[i] == field) return sample_type & field ? position : 0;
    position += (sample_type & order[i]) != 0;
  }
  return position; /* of what comes first behind them */
}

/* Words from the end of a record that is no sample to a field of its `struct sample_id`; 0 if it is
 * not there. */
static uint32_t trailer_position(uint64_t sample_type, uint64_t field) {
  static const uint64_t order[] = {SAMPLE_IDENTIFIER, SAMPLE_CPU,  SAMPLE_STREAM_ID,
                                   SAMPLE_ID,         SAMPLE_TIME, SAMPLE_TID};
  uint32_t position = 1;
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    if (order[i] == field) return sample_type & field ? position : 0;
    position += (sample_type & order[i]) != 0;
  }
  return 0;
}

static uint64_t trailer_word(const profile *p, const uint8_t *record, uint32_t size, uint64_t field,
                             uint64_t missing) {
  uint32_t position =
      p->has_trailer && p->event_count != 0 ? trailer_position(p->events[0].sample_type, field) : 0;
  return position == 0 || size < 8 * (position + 1) ? missing
                                                    : word_at(record + size - 8 * position);
}

uint64_t trailer_time(const profile *p, const uint8_t *record, uint32_t size) {
  return p->has_time ? trailer_word(p, record, size, SAMPLE_TIME, p->latest_ns) : p->sequence;
}

int32_t trailer_cpu(const profile *p, const uint8_t *record, uint32_t size) {
  return (int32_t)(uint32_t)trailer_word(p, record, size, SAMPLE_CPU, UINT32_MAX);
}

/* Which event a sample is of. All events have their id in the same place (perf_evlist__id_pos of
 * tools/perf). NONE: unknown. */
uint32_t event_of(const profile *p, const uint8_t *record, uint32_t size) {
  if (p->event_count == 0) return NONE;
  uint64_t type = p->events[0].sample_type;
  uint32_t position = head_position(type, type & SAMPLE_IDENTIFIER ? SAMPLE_IDENTIFIER : SAMPLE_ID),
           cursor;
  if (p->event_count == 1 || position == 0 || p->event_ids.count == 0) return 0;
  if (size < 8 * (position + 1)) return NONE;
  uint64_t id = word_at(record + 8 * position);
  uint32_t hash = (uint32_t)mix(id);
  for (uint32_t at = table_first(&p->event_ids, hash, &cursor); at != NONE;
       at = table_next(&p->event_ids, hash, &cursor))
    if (p->ids[at].id == id) return p->ids[at].event;
  return NONE;
}

/* ---- a sample taken apart -------------------------------------------------------------------- */

struct cursor {
  const uint8_t *record;
  uint32_t at, end; /* in words */
  bool is_valid;
};

static uint64_t take(struct cursor *cursor) {
  if (cursor->at >= cursor->end) {
    cursor->is_valid = false;
    return 0;
  }
  return word_at(cursor->record + 8 * cursor->at++);
}

static void skip(struct cursor *cursor, uint64_t words) {
  if (words > cursor->end - cursor->at) {
    cursor->is_valid = false;
    words = cursor->end - cursor->at;
  }
  cursor->at += (uint32_t)words;
}

static uint64_t bits(uint64_t mask) { return (uint64_t)__builtin_popcountll(mask); }

static uint64_t times(uint64_t count, uint64_t width) {
  return count > UINT16_MAX ? UINT32_MAX : count * width;
}

static void skip_read(struct cursor *cursor, uint64_t format) {
  uint64_t clocks = bits(format & (FORMAT_TOTAL_TIME_ENABLED | FORMAT_TOTAL_TIME_RUNNING));
  uint64_t each = 1 + bits(format & (FORMAT_ID | FORMAT_LOST));
  if (format & FORMAT_GROUP) {
    uint64_t count = take(cursor);
    skip(cursor, clocks);
    skip(cursor, times(count, each));
  } else {
    skip(cursor, clocks + each);
  }
}

static void skip_raw_and_branches(struct cursor *cursor, const struct event *event) {
  if (event->sample_type & SAMPLE_RAW) {
    /* 32 bits wide; the data follows in the same word. */
    uint64_t raw_bytes = take(cursor) & UINT32_MAX;
    skip(cursor, (raw_bytes + 4 + 7) / 8 - 1);
  }
  if (event->sample_type & SAMPLE_BRANCH_STACK) {
    uint64_t count = take(cursor);
    skip(cursor, (event->branch_sample_type & BRANCH_HW_INDEX) != 0);
    skip(cursor, times(count, event->branch_sample_type & BRANCH_COUNTERS ? 4 : 3));
  }
}

/* The ABI word, and the registers unless it is 0 (a kernel thread has none). Returns where they
 * are, 0 for none. */
static uint32_t skip_registers(struct cursor *cursor, uint64_t mask) {
  if (take(cursor) == 0) return 0;
  uint32_t at = cursor->at;
  skip(cursor, bits(mask));
  return cursor->is_valid ? at : 0;
}

static uint64_t cgroup_word(struct cursor *cursor, const struct event *event) {
  uint64_t type = event->sample_type;
  if (type & SAMPLE_STACK_USER) {
    uint64_t stack_bytes = take(cursor);
    if (stack_bytes != 0) skip(cursor, times(stack_bytes, 1) / 8 + 1);
  }
  skip(cursor, bits(type & (SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT)) +
                   bits(type & (SAMPLE_DATA_SRC | SAMPLE_TRANSACTION)));
  if (type & SAMPLE_REGS_INTR) skip_registers(cursor, event->interrupt_registers);
  skip(cursor, bits(type & SAMPLE_PHYS_ADDR));
  return take(cursor);
}

static void take_user_registers(struct cursor *cursor, const struct event *event, uint16_t misc,
                                struct sample *sample) {
  uint32_t registers = skip_registers(cursor, event->user_registers);
  if (registers == 0) return;
  if (event->sample_type & SAMPLE_STACK_USER) {
    /* With `--call-graph dwarf` the kernel leaves user frames out; of the copied stack only the
     * innermost frame is known. */
    if (event->ip_register >= 64 || !(event->user_registers >> event->ip_register & 1)) return;
    uint64_t before = bits(event->user_registers & ((1ull << event->ip_register) - 1));
    sample->extra[0] = CONTEXT_USER;
    sample->extra[1] = word_at(cursor->record + 8 * (registers + before));
    sample->extra_length = 2;
  } else if ((misc & MISC_CPUMODE) == MISC_KERNEL && event->user_registers != 0) {
    /* Of a program that runs its own code the register says nothing; in a system call it is the
     * first argument. */
    sample->argument = word_at(cursor->record + 8 * registers);
    sample->has_argument = true;
  }
}

bool decode_sample(const profile *p, const uint8_t *record, uint32_t size, uint32_t number,
                   struct sample *sample) {
  const struct event *event = &p->events[number];
  uint64_t type = event->sample_type;
  uint16_t misc;
  memcpy(&misc, record + 4, 2);
  uint32_t head = head_position(type, 0);
  if (size < 8 * head) return false;
  struct cursor cursor = {record, head, size / 8, true};
  *sample =
      (struct sample){.event = number, .pid = -1, .tid = -1, .cpu = -1, .cgroup_id = UINT64_MAX};
  uint32_t position = head_position(type, SAMPLE_TID);
  if (position != 0) {
    memcpy(&sample->pid, record + 8 * position, 4);
    memcpy(&sample->tid, record + 8 * position + 4, 4);
  }
  if ((position = head_position(type, SAMPLE_CPU)) != 0)
    memcpy(&sample->cpu, record + 8 * position, 4);
  if (type & SAMPLE_READ) skip_read(&cursor, event->read_format);
  if (type & SAMPLE_CALLCHAIN) {
    uint64_t length = take(&cursor);
    sample->chain = record + 8 * cursor.at;
    sample->length = length <= cursor.end - cursor.at ? (uint32_t)length : 0;
    skip(&cursor, length);
  } else if (type & SAMPLE_IP) {
    /* Without a chain the instruction pointer is all of the stack, and `misc` says where it ran. */
    static const uint64_t marks[8] = {CONTEXT_USER, CONTEXT_KERNEL,       CONTEXT_USER,
                                      CONTEXT_USER, CONTEXT_GUEST_KERNEL, CONTEXT_GUEST_USER,
                                      CONTEXT_USER, CONTEXT_USER};
    sample->extra[0] = marks[misc & MISC_CPUMODE];
    sample->extra[1] = word_at(record + 8 * head_position(type, SAMPLE_IP));
    sample->extra_length = 2;
  }
  if (type & (SAMPLE_REGS_USER | SAMPLE_CGROUP)) skip_raw_and_branches(&cursor, event);
  if (type & SAMPLE_REGS_USER) take_user_registers(&cursor, event, misc, sample);
  if (type & SAMPLE_CGROUP) sample->cgroup_id = cgroup_word(&cursor, event);
  return cursor.is_valid;
}

/* The time of a record of the kernel; false for a sample without its time, or of no event that is
 * known. */
bool time_of(const profile *p, const uint8_t *record, uint32_t size, uint32_t kind,
             uint64_t *time) {
  if (kind != RECORD_SAMPLE) {
    *time = trailer_time(p, record, size);
    return true;
  }
  uint32_t event = event_of(p, record, size), position;
  if (event == NONE) return false;
  position = head_position(p->events[event].sample_type, SAMPLE_TIME);
  if (position == 0 || !p->has_time) {
    *time = p->sequence;
    return true;
  }
  if (size < 8 * (position + 1)) return false;
  *time = word_at(record + 8 * position);
  return *time <= INT64_MAX;
}
