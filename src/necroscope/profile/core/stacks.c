/* The stacks of a segment: one tree, in which a node is its caller's node plus one frame. */
#include "profile.h"

#include <string.h>

/* The hash of a node is that of all frames that lead to it, so it is known before its caller's node
 * is: the slots of a whole stack are fetched together instead of one after the other. The tree of a
 * long segment is larger than any cache, and waiting for memory is what a frame costs. */
#define AHEAD 64 /* frames */

static uint64_t hash_below(uint64_t caller_hash, int32_t frame) {
  return mix(caller_hash + (uint64_t)(uint32_t)frame + 1);
}

static uint32_t slot_hash(uint64_t hash) { return (uint32_t)(hash >> 16); }

static int32_t frame_of(profile *p, uint32_t function) {
  if (p->functions[function].frame >= 0) return p->functions[function].frame;
  if (!grow(p, (void **)&p->frames, &p->frame_capacity, p->frame_count + 1, sizeof *p->frames))
    return -1;
  p->frames[p->frame_count] = function;
  return p->functions[function].frame = (int32_t)p->frame_count++;
}

static int32_t find_node(const profile *p, int32_t parent, int32_t frame, uint32_t hash) {
  uint32_t cursor;
  for (uint32_t at = table_first(&p->node_table, hash, &cursor); at != NONE;
       at = table_next(&p->node_table, hash, &cursor))
    if (p->parents[at] == parent && p->node_frames[at] == frame) return (int32_t)at;
  return -1;
}

static void fetch_node(const profile *p, uint32_t hash) {
  uint32_t cursor, at = table_first(&p->node_table, hash, &cursor);
  if (at == NONE) return;
  __builtin_prefetch(&p->parents[at]);
  __builtin_prefetch(&p->node_frames[at]);
}

/* False: there is no room. */
static bool add_node(profile *p, struct descent *down, uint32_t function, uint32_t tenant) {
  int32_t frame = frame_of(p, function);
  if (frame < 0 || !table_reserve(p, &p->node_table)) return false;
  if (!grow(p, (void **)&p->node_frames, &p->node_frames_capacity, p->node_count + 1,
            sizeof *p->node_frames))
    return false;
  if (!grow(p, (void **)&p->parents, &p->parents_capacity, p->node_count + 1, sizeof *p->parents))
    return false;
  p->parents[p->node_count] = down->node;
  p->node_frames[p->node_count] = frame;
  *down = (struct descent){(int32_t)p->node_count, hash_below(down->hash, frame)};
  table_add(&p->node_table, slot_hash(down->hash), p->node_count++);
  p->tenants[tenant].nodes++;
  return true;
}

/* As far as there are nodes. Returns how many functions are left. */
static uint32_t follow(const profile *p, struct descent *down, const uint32_t *functions,
                       uint32_t left) {
  uint64_t hashes[AHEAD];
  int32_t frames[AHEAD];
  uint32_t count;
  do {
    uint64_t hash = down->hash;
    for (count = 0; count < AHEAD && count < left; count++) {
      frames[count] = p->functions[functions[left - 1 - count]].frame;
      if (frames[count] < 0) break;
      hashes[count] = hash = hash_below(hash, frames[count]);
      table_fetch(&p->node_table, slot_hash(hash));
    }
    for (uint32_t i = 0; i < count; i++) fetch_node(p, slot_hash(hashes[i]));
    for (uint32_t i = 0; i < count; i++) {
      int32_t next = find_node(p, down->node, frames[i], slot_hash(hashes[i]));
      if (next < 0) return left;
      *down = (struct descent){next, hashes[i]};
      left--;
    }
  } while (count == AHEAD);
  return left;
}

static bool may_grow(const profile *p, uint32_t tenant) {
  return p->tenants[tenant].nodes < p->tenant_nodes && p->node_count < p->most_nodes;
}

/* Functions innermost first, called from where `down` is. False: there is no room. Below the last
 * node that there is, all are new. */
bool descend(profile *p, struct descent *down, uint32_t tenant, const uint32_t *functions,
             uint32_t count) {
  for (uint32_t left = follow(p, down, functions, count); left > 0; left--) {
    if (!may_grow(p, tenant) || !add_node(p, down, functions[left - 1], tenant)) return false;
  }
  return true;
}

/* What stands for all stacks of a tenant that has made too many in this segment; -2: there is no
 * room. */
int32_t bounded_stack(profile *p, uint32_t tenant) {
  struct descent down = START;
  note_bounded(p, tenant);
  if (follow(p, &down, &p->bounded, 1) == 0 || add_node(p, &down, p->bounded, tenant))
    return down.node;
  return -2;
}

/* Given innermost first. */
int32_t find_stack(profile *p, uint32_t tenant, const uint32_t *functions, uint32_t count) {
  struct descent down = START;
  return descend(p, &down, tenant, functions, count) ? down.node : bounded_stack(p, tenant);
}
