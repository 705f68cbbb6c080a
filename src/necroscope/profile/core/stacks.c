/* The stacks of a segment: one tree, in which a node is its caller's node plus one frame. */
#include "profile.h"

#include <string.h>

static uint32_t node_hash(int32_t parent, int32_t frame) {
  return (uint32_t)(mix((uint64_t)(uint32_t)(parent + 1) << 32 | (uint32_t)frame) >> 8);
}

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

/* -1: there is no room. */
static int32_t child(profile *p, int32_t parent, uint32_t function, uint32_t tenant) {
  int32_t frame = frame_of(p, function);
  if (frame < 0) return -1;
  uint32_t hash = node_hash(parent, frame);
  int32_t known = find_node(p, parent, frame, hash);
  if (known >= 0) return known;
  if (!table_reserve(p, &p->node_table)) return -1;
  if (!grow(p, (void **)&p->node_frames, &p->node_frames_capacity, p->node_count + 1,
            sizeof *p->node_frames))
    return -1;
  if (!grow(p, (void **)&p->parents, &p->parents_capacity, p->node_count + 1, sizeof *p->parents))
    return -1;
  p->parents[p->node_count] = parent;
  p->node_frames[p->node_count] = frame;
  table_add(&p->node_table, hash, p->node_count);
  p->tenants[tenant].nodes++;
  return (int32_t)p->node_count++;
}

static bool may_grow(const profile *p, uint32_t tenant) {
  return p->tenants[tenant].nodes < p->tenant_nodes && p->node_count < p->most_nodes;
}

/* The node of a function that this one calls. A tenant that has made too many stacks in this
 * segment keeps what it has. */
int32_t next_node(profile *p, int32_t node, uint32_t function, uint32_t tenant) {
  int32_t frame = p->functions[function].frame, next = -1;
  if (frame >= 0) next = find_node(p, node, frame, node_hash(node, frame));
  return next < 0 && may_grow(p, tenant) ? child(p, node, function, tenant) : next;
}

/* Given innermost first. What there is no room for is `[bounded]`. */
int32_t find_stack(profile *p, uint32_t tenant, const uint32_t *functions, uint32_t count) {
  int32_t node = -1;
  for (uint32_t left = count; left > 0; left--) {
    int32_t next = next_node(p, node, functions[left - 1], tenant);
    if (next < 0) {
      note_bounded(p, tenant);
      next = child(p, -1, p->bounded, tenant);
      return next < 0 ? -2 : next;
    }
    node = next;
  }
  return node;
}
