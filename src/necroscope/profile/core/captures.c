/* What only captures of other tools need: looking ahead in a file, one profile for many of them,
 * and stacks of names instead of addresses. */
#include "profile.h"
#include "perf_abi.h"

#include <string.h>

/* First and last time of the samples in whole records, in `span`; returns how many bytes those are.
 * Nothing is queued. */
PUBLIC uint64_t profile_scan(profile *p, const uint8_t *bytes, uint64_t length, uint64_t *span) {
  uint64_t at = 0, time;
  uint32_t kind, size;
  while ((size = record_at(bytes + at, length - at, &kind)) != 0) {
    if (kind == RECORD_SAMPLE && time_of(p, bytes + at, size, kind, &time)) {
      if (time < span[0]) span[0] = time;
      if (time > span[1]) span[1] = time;
    }
    at += size;
  }
  return at;
}

/* How many bytes of records come first that are not perf's own. */
PUBLIC uint64_t profile_skip(const uint8_t *bytes, uint64_t length) {
  uint64_t at = 0;
  uint32_t kind, size;
  while ((size = record_at(bytes + at, length - at, &kind)) != 0 &&
         (kind < RECORD_USER_TYPES || kind == FINISHED_ROUND))
    at += size;
  return at;
}

/* A time that no record still to come lies before; 0 if none is known. `is_late`: records came
 * later than the rounds they are of. */
PUBLIC uint64_t profile_safe_until(const profile *p, uint32_t is_late) {
  return p->round_ends[is_late ? 0 : 1];
}

/* The time of the record that would be replayed next; UINT64_MAX if there is none. */
PUBLIC uint64_t profile_earliest(profile *p) {
  sort_queue(p);
  return p->queue.done < p->queue.count ? p->queue.records[p->queue.done].time : UINT64_MAX;
}

/* First and last time of the turn's samples, those of idle cores among them; returns how many they
 * were. */
PUBLIC uint64_t profile_turn_span(const profile *p, int64_t *span) {
  span[0] = p->first_ns;
  span[1] = p->last_ns;
  return p->turn_samples;
}

/* A turn of a file replays at most so many records: what it holds besides them, rows and chains
 * that wait, stays as small. */
PUBLIC void profile_limit_turn(profile *p, uint32_t records) { p->turn_records = records; }

/* Another capture: its events, tasks, mappings and addresses are others. Functions and stacks that
 * are known keep their numbers. */
PUBLIC void profile_start_capture(profile *p, uint32_t has_time, uint32_t has_trailer) {
  drop_pending(p);
  profile_forget_tasks(p);
  profile_forget_blocks(p, NONE, NONE, 0, 0);
  forget_places(p);
  p->event_count = p->id_count = 0;
  table_clear(&p->event_ids);
  p->queue.length = p->queue.count = p->queue.done = 0;
  p->queue.is_sorted = true;
  p->has_time = has_time != 0;
  p->has_trailer = has_trailer != 0;
  p->window_from = 0;
  p->window_to = UINT64_MAX;
  p->sequence = p->latest_ns = p->rounds = p->round_bytes = 0;
  memset(p->round_ends, 0, sizeof p->round_ends);
  p->samples = p->idle = p->malformed = p->refused = p->cut = p->bounded_frames = 0;
  p->rows.count = p->name_count = p->cgroup_count = p->question_count = 0;
  p->passed_on_length = 0;
}

/* Marks of each frame, as bits, go to all stacks that it is part of. Counts samples by the marks of
 * their stack into `sets` and `counts`, tables of SETS entries in which 0 is free; beyond half of
 * them only the lowest mark counts. */
#define SETS 4096

PUBLIC int profile_count_marks(profile *p, const uint64_t *marks, uint32_t mark_count,
                               const int32_t *stacks, const int32_t *weights, uint32_t count,
                               uint64_t *sets, uint64_t *counts) {
  size_t bytes = (p->node_count + 1ull) * sizeof(uint64_t);
  uint64_t *of_node = resize(p, NULL, 0, bytes);
  uint32_t used = 0;
  if (of_node == NULL) return -1;
  for (uint32_t i = 0; i < p->node_count; i++) {
    uint32_t frame = (uint32_t)p->node_frames[i];
    of_node[i] =
        (frame < mark_count ? marks[frame] : 0) | (p->parents[i] >= 0 ? of_node[p->parents[i]] : 0);
  }
  for (uint32_t i = 0; i < SETS; i++) used += sets[i] != 0;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t set = stacks[i] >= 0 && (uint32_t)stacks[i] < p->node_count ? of_node[stacks[i]] : 0;
    if (set == 0) continue;
    uint32_t at = (uint32_t)mix(set) % SETS;
    while (sets[at] != 0 && sets[at] != set) at = (at + 1) % SETS;
    if (sets[at] == 0 && used >= SETS / 2) {
      set &= ~set + 1;
      for (at = (uint32_t)mix(set) % SETS; sets[at] != 0 && sets[at] != set;) at = (at + 1) % SETS;
    }
    used += sets[at] == 0;
    sets[at] = set;
    counts[at] += weights == NULL ? 1u : (uint32_t)weights[i];
  }
  resize(p, of_node, bytes, 0);
  return 0;
}

/* Frames of the segment from a number on; returns how many. Their names lie in the text that
 * `profile_text` shows. */
PUBLIC uint32_t profile_frames(const profile *p, uint32_t first, uint32_t count,
                               struct frame_view *frames) {
  uint32_t found = 0;
  for (; found < count && first + found < p->frame_count; found++) {
    const struct function *function = &p->functions[p->frames[first + found]];
    frames[found] =
        (struct frame_view){function->name, function->offset,      function->module,
                            function->kind, function->name_length, function->has_offset};
  }
  return found;
}

PUBLIC const char *profile_text(const profile *p, uint64_t *length) {
  *length = p->text.length;
  return p->text.bytes;
}

#define FRAMES_AT_ONCE 1024

/* One stack, outermost first, whatever its depth. */
static int32_t intern_stack(profile *p, const uint32_t *given, uint32_t length) {
  uint32_t functions[FRAMES_AT_ONCE];
  struct descent down = START;
  for (uint32_t part; length > 0; given += part, length -= part) {
    part = length < FRAMES_AT_ONCE ? length : FRAMES_AT_ONCE;
    for (uint32_t i = 0; i < part; i++)
      functions[part - 1 - i] =
          find_function(p, NOBODY, MADE_MODULE, FUNCTION_GIVEN, "", 0, given[i]);
    if (!descend(p, &down, NOBODY, functions, part)) return bounded_stack(p, NOBODY);
  }
  return down.node;
}

/* Stacks whose frames are numbers of the caller's own, one after the other, each outermost first;
 * the nodes go to `nodes`. */
PUBLIC void profile_intern_stacks(profile *p, const uint32_t *given, const uint32_t *lengths,
                                  uint32_t count, int32_t *nodes) {
  for (uint32_t i = 0; i < count; given += lengths[i++])
    nodes[i] = intern_stack(p, given, lengths[i]);
}
