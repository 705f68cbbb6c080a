/* The perf events of a profile: how their samples look, the ids by which a sample names its event,
 * and what was met of each. */
#include "profile.h"

PUBLIC int profile_add_event(profile *p, const struct event *event) {
  uint32_t wanted = p->event_count + 1;
  if (wanted > MOST_EVENTS ||
      !grow(p, (void **)&p->events, &p->event_capacity, wanted, sizeof *p->events))
    return -1;
  if (!grow(p, (void **)&p->event_counts, &p->event_counts_capacity, wanted,
            sizeof *p->event_counts))
    return -1;
  p->event_counts[p->event_count] = (struct event_counts){0};
  p->events[p->event_count] = *event;
  return (int)p->event_count++;
}

PUBLIC int profile_add_id(profile *p, uint64_t id, uint32_t event) {
  uint32_t hash = (uint32_t)mix(id), cursor;
  if (event >= p->event_count || p->id_count >= MOST_IDS) return -1;
  for (uint32_t at = table_first(&p->event_ids, hash, &cursor); at != NONE;
       at = table_next(&p->event_ids, hash, &cursor))
    if (p->ids[at].id == id) {
      p->ids[at].event = event;
      return 0;
    }
  if (!table_reserve(p, &p->event_ids) ||
      !grow(p, (void **)&p->ids, &p->id_capacity, p->id_count + 1, sizeof *p->ids))
    return -1;
  p->ids[p->id_count] = (struct event_id){id, event};
  table_add(&p->event_ids, hash, p->id_count++);
  return 0;
}

/* Samples of an event are counted from now on, and nothing else. */
PUBLIC void profile_leave_out(profile *p, uint32_t event) {
  if (event < p->event_count) p->events[event].is_passed_on = LEFT_OUT;
}

PUBLIC int profile_event_counts(const profile *p, uint32_t event, struct event_counts *counts) {
  if (event >= p->event_count) return -1;
  *counts = p->event_counts[event];
  return 0;
}
