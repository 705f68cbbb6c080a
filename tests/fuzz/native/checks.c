/* What must hold of a profile after each step, whatever it was given. */
#include "fuzz.h"

static void check_table(const struct table *table) {
  uint32_t used = 0;
  for (uint32_t i = 0; i < table->capacity; i++) used += table->slots[i].entry != 0;
  MUST(used == table->count && 2ull * used <= table->capacity);
}

static void check_image(const profile *p, const struct image *image) {
  MUST(image->count <= image->capacity && image->count <= MOST_MAPPINGS);
  for (uint32_t i = 0; i < image->count; i++) {
    const struct mapping *mapping = &image->mappings[i];
    MUST(mapping->start < mapping->end && mapping->module < p->module_count);
    MUST(i == 0 || image->mappings[i - 1].end <= mapping->start);
  }
}

/* An image's charge, once however many hold it. */
static uint64_t visit(const profile *p, struct image *image, uint32_t tenant, bool is_counting) {
  if (image == NULL || image->is_visited == is_counting) return 0;
  image->is_visited = is_counting;
  check_image(p, image);
  return is_counting && image->tenant == tenant
             ? sizeof *image + (uint64_t)image->capacity * sizeof *image->mappings
             : 0;
}

static uint64_t held_by_images(const profile *p, uint32_t tenant) {
  uint64_t bytes = 0;
  for (int counting = 1; counting >= 0; counting--) {
    for (uint32_t i = 0; i < p->process_table.capacity; i++) {
      uint32_t entry = p->process_table.slots[i].entry;
      if (entry != 0) bytes += visit(p, p->processes[entry - 1].image, tenant, counting);
    }
    for (uint32_t i = 0; i < p->pending_count; i++)
      bytes += visit(p, p->pending[i].image, tenant, counting);
  }
  return bytes;
}

/* The charge of each tenant is what is held for it, and no more than it may have. */
static void check_tenant(const profile *p, uint32_t tenant) {
  uint64_t bytes = held_by_images(p, tenant), blocks = 0;
  uint32_t modules = 0;
  for (uint32_t i = 0; i < p->function_count; i++) {
    const struct function *function = &p->functions[i];
    bool is_charged =
        function->tenant == tenant && (function->name_length != 0 || function->has_offset);
    if (is_charged) bytes += sizeof *function + function->name_length;
  }
  for (uint32_t i = 0; i < p->block_count; i++)
    blocks += p->blocks[i]->tenant == tenant ? p->blocks[i]->size_bytes : 0;
  for (uint32_t i = 0; i < p->place_count; i++)
    bytes += p->places[i].tenant == tenant ? sizeof *p->places : 0;
  for (uint32_t i = BOUNDED_MODULE + 1; i < p->module_count; i++) {
    if (p->modules[i].tenant != tenant) continue;
    bytes += sizeof *p->modules + p->modules[i].path_length;
    modules++;
  }
  MUST(p->tenants[tenant].block_bytes == blocks && p->tenants[tenant].modules == modules);
  MUST(p->tenants[tenant].charged_bytes == bytes + blocks);
  MUST(p->tenants[tenant].charged_bytes <= p->tenant_limit_bytes);
}

static void check_names(const profile *p) {
  struct module_view module;
  for (uint32_t i = 0; i < p->module_count; i++) {
    MUST(profile_module(p, i, &module) == 0);
    MUST(p->modules[i].path + p->modules[i].path_length <= p->text.length);
    MUST(p->modules[i].no_offset == NONE || p->modules[i].no_offset < p->function_count);
  }
  MUST(profile_module(p, p->module_count, &module) == -1);
  for (uint32_t i = 0; i < p->function_count; i++) {
    const struct function *function = &p->functions[i];
    MUST(function->module < p->module_count &&
         function->name + function->name_length <= p->text.length);
    MUST(function->frame < (int32_t)p->frame_count);
  }
  for (uint32_t i = 0; i < p->block_count; i++) {
    const struct block *block = p->blocks[i];
    MUST(block->module < p->module_count && block->tenant < p->tenant_count);
    for (uint32_t at = 0; at < block->count; at++)
      MUST(block->functions[at] == NONE || block->functions[at] < p->function_count);
  }
  for (uint32_t i = 0; i < p->place_count; i++)
    MUST(p->places[i].function == NONE || p->places[i].function < p->function_count);
}

static void check_stacks(const profile *p) {
  struct frame_view named;
  uint64_t text_length;
  profile_text(p, &text_length);
  for (uint32_t node = 0; node < p->node_count; node++) {
    MUST(p->parents[node] >= -1 && p->parents[node] < (int32_t)node);
    MUST(p->node_frames[node] >= 0 && p->node_frames[node] < (int32_t)p->frame_count);
  }
  for (uint32_t frame = 0; frame < p->frame_count; frame++) {
    MUST(p->frames[frame] < p->function_count &&
         p->functions[p->frames[frame]].frame == (int32_t)frame);
    MUST(profile_frames(p, frame, 1, &named) == 1 && named.module < p->module_count);
    MUST(named.name <= text_length && named.name_length <= text_length - named.name);
  }
  MUST(profile_frames(p, p->frame_count, 1, &named) == 0);
}

void check(const profile *p) {
  const struct table *tables[] = {
      &p->event_ids,      &p->task_table,  &p->process_table, &p->module_table, &p->block_table,
      &p->function_table, &p->place_table, &p->node_table,    &p->name_table,   &p->cgroup_table};
  MUST(p->used_bytes <= p->limit_bytes);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) check_table(tables[i]);
  MUST(p->block_table.count == p->block_count && p->place_table.count == p->place_count &&
       p->node_table.count == p->node_count);
  uint64_t block_bytes = 0;
  for (uint32_t tenant = 0; tenant < p->tenant_count; tenant++) {
    block_bytes += p->tenants[tenant].block_bytes;
    if (tenant < 8 || p->tenants[tenant].charged_bytes != 0) check_tenant(p, tenant);
  }
  MUST(block_bytes == p->block_bytes);
  check_names(p);
  check_stacks(p);
  MUST(p->queue.done <= p->queue.count && p->queue.length <= p->queue.capacity);
}

/* After a turn. */
void check_rows(const profile *p) {
  const struct rows *rows = &p->rows;
  uint32_t without_cgroup = 0;
  MUST(p->pending_count == 0 && p->question_count == 0 && rows->count <= rows->capacity);
  for (uint32_t row = 0; row < rows->count; row++) {
    bool has_cgroup = rows->has_cgroup[row / 8] >> row % 8 & 1;
    without_cgroup += !has_cgroup;
    MUST(rows->stack[row] >= 0 && (uint32_t)rows->stack[row] < p->node_count);
    MUST(rows->name[row] >= 0 && (uint32_t)rows->name[row] < p->name_count);
    MUST(has_cgroup ? (uint32_t)rows->cgroup[row] < p->cgroup_count : rows->cgroup[row] == 0);
    MUST(rows->event[row] >= 0 && (uint32_t)rows->event[row] < p->event_count);
    MUST(rows->cpu[row] >= -1 && rows->has_argument[row] <= 1);
  }
  MUST(without_cgroup == rows->without_cgroup);
}
