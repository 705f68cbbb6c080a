/* A profile from its start to its end, and what Python sees of it between turns. */
#include "profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

PUBLIC uint32_t profile_abi(void) { return PROFILE_ABI; }

struct limits {
  uint64_t limit_bytes, tenant_limit_bytes;
  uint32_t tenant_nodes, tenant_unnamed, most_nodes;
  uint32_t asks, has_time, has_trailer;
};

PUBLIC profile *profile_new(const struct limits *limits, const char *idle_names,
                            uint32_t idle_names_length) {
  if (idle_names_length > sizeof((profile *)0)->idle_names ||
      (idle_names_length != 0 && idle_names[idle_names_length - 1] != 0))
    return NULL;
  profile *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  seed_hashes();
  p->limit_bytes = limits->limit_bytes;
  p->tenant_limit_bytes = limits->tenant_limit_bytes;
  p->tenant_nodes = limits->tenant_nodes;
  p->tenant_unnamed = limits->tenant_unnamed;
  p->most_nodes = limits->most_nodes;
  p->asks = limits->asks;
  p->has_time = limits->has_time;
  p->has_trailer = limits->has_trailer;
  p->turn = 1;
  p->task_free = p->process_free = NONE;
  p->window_to = UINT64_MAX;
  p->queue.is_sorted = true;
  if (idle_names_length != 0) memcpy(p->idle_names, idle_names, idle_names_length);
  p->idle_names_length = idle_names_length;
  p->tenants = resize(p, NULL, 0, 64 * sizeof *p->tenants);
  if (p->tenants != NULL) {
    memset(p->tenants, 0, 64 * sizeof *p->tenants);
    p->tenant_count = 64;
    if (modules_start(p) && functions_start(p)) return p;
  }
  profile_free(p);
  return NULL;
}

/* Of rows that nobody will finish. */
void drop_pending(profile *p) {
  for (uint32_t i = 0; i < p->pending_count; i++) image_release(p, p->pending[i].image);
  p->pending_count = 0;
  p->pending_words_count = 0;
}

/* What a turn is made of, between two of them. */
void turn_free(profile *p) {
  rows_free(p);
  resize(p, p->pending, p->pending_capacity * sizeof *p->pending, 0);
  resize(p, p->pending_words, p->pending_words_capacity * sizeof *p->pending_words, 0);
  resize(p, p->questions, p->question_capacity * sizeof *p->questions, 0);
  resize(p, p->passed_on, p->passed_on_capacity, 0);
  p->pending = NULL;
  p->pending_words = NULL;
  p->questions = NULL;
  p->passed_on = NULL;
  p->pending_capacity = p->question_capacity = 0;
  p->pending_words_capacity = p->passed_on_capacity = 0;
}

PUBLIC void profile_free(profile *p) {
  if (p == NULL) return;
  drop_pending(p);
  profile_forget_tasks(p);
  functions_free(p);
  modules_free(p);
  turn_free(p);
  struct table *tables[] = {&p->event_ids,  &p->task_table, &p->process_table,
                            &p->node_table, &p->name_table, &p->cgroup_table};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) table_free(p, tables[i]);
  queue_free(p);
  resize(p, p->tenants, p->tenant_count * sizeof *p->tenants, 0);
  resize(p, p->events, p->event_capacity * sizeof *p->events, 0);
  resize(p, p->event_counts, p->event_counts_capacity * sizeof *p->event_counts, 0);
  resize(p, p->ids, p->id_capacity * sizeof *p->ids, 0);
  resize(p, p->tasks, p->task_capacity * sizeof *p->tasks, 0);
  resize(p, p->processes, p->process_capacity * sizeof *p->processes, 0);
  resize(p, p->exited, p->exited_capacity * sizeof *p->exited, 0);
  resize(p, p->parents, p->parents_capacity * sizeof *p->parents, 0);
  resize(p, p->node_frames, p->node_frames_capacity * sizeof *p->node_frames, 0);
  resize(p, p->frames, p->frame_capacity * sizeof *p->frames, 0);
  resize(p, p->names, (size_t)p->name_capacity * NAME_BYTES, 0);
  resize(p, p->cgroups, p->cgroup_capacity * sizeof *p->cgroups, 0);
  assert(p->used_bytes == 0); /* else the account is wrong */
  free(p);
}

PUBLIC void profile_view(const profile *p, struct view *view) {
  *view = (struct view){
      .rows = &p->rows,
      .names = p->names,
      .cgroups = p->cgroups,
      .parents = p->parents,
      .frames = p->node_frames,
      .questions = p->questions,
      .passed_on = p->passed_on,
      .name_count = p->name_count,
      .cgroup_count = p->cgroup_count,
      .node_count = p->node_count,
      .frame_count = p->frame_count,
      .question_count = p->question_count,
      .passed_on_bytes = p->passed_on_length,
      .pending_count = p->pending_count,
      .latest_ns = p->latest_ns,
      .queued_bytes = p->queue.length,
      .used_bytes = p->used_bytes,
      .limit_bytes = p->limit_bytes,
      .samples = p->samples,
      .idle = p->idle,
      .malformed = p->malformed,
      .refused = p->refused,
      .cut = p->cut,
      .rounds = p->rounds,
      .bounded = p->bounded_frames,
      .processes = p->process_table.count,
      .functions = p->function_count,
  };
}

/* The tenants whose frames were bounded since the last call: the caller's numbers of their cgroups
 * (-1: of nobody), and how many. */
PUBLIC uint32_t profile_take_bounded(profile *p, int32_t *cgroups, uint32_t *counts,
                                     uint32_t most) {
  uint32_t found = 0;
  for (uint32_t i = NOBODY + 1; i < FIRST_CGROUP; i++) {
    p->tenants[NOBODY].bounded += p->tenants[i].bounded;
    p->tenants[i].bounded = 0;
  }
  for (uint32_t i = 0; i < p->tenant_count && found < most; i++) {
    if (p->tenants[i].bounded == 0) continue;
    cgroups[found] = i == NOBODY ? -1 : (int32_t)(i - FIRST_CGROUP);
    counts[found++] = p->tenants[i].bounded;
    p->tenants[i].bounded = 0;
  }
  return found;
}
