/* The rows of a turn, one array per column, the names and cgroups in them, and the questions that
 * rows leave open. */
#include "profile.h"

#include <stdio.h>
#include <string.h>

bool reserve_row(profile *p) {
  struct rows *rows = &p->rows;
  if (rows->count < rows->capacity) return true;
  uint32_t wanted = rows->count + 1, *capacity = rows->capacities;
#define GROW_COLUMN(column) \
  grow(p, (void **)&rows->column, capacity++, wanted, sizeof *rows->column)
  bool is_grown = GROW_COLUMN(time) && GROW_COLUMN(cpu) && GROW_COLUMN(pid) && GROW_COLUMN(tid) &&
                  GROW_COLUMN(name) && GROW_COLUMN(cgroup) && GROW_COLUMN(stack) &&
                  GROW_COLUMN(event) && GROW_COLUMN(cgroup_id) && GROW_COLUMN(argument) &&
                  GROW_COLUMN(has_argument) && GROW_COLUMN(has_cgroup);
#undef GROW_COLUMN
  if (is_grown) rows->capacity = rows->capacities[0];
  return is_grown;
}

void rows_free(profile *p) {
  struct rows *rows = &p->rows;
  const uint32_t *capacity = rows->capacities;
#define FREE_COLUMN(column) resize(p, rows->column, *capacity++ * sizeof *rows->column, 0)
  FREE_COLUMN(time), FREE_COLUMN(cpu), FREE_COLUMN(pid), FREE_COLUMN(tid), FREE_COLUMN(name),
      FREE_COLUMN(cgroup), FREE_COLUMN(stack);
  FREE_COLUMN(event), FREE_COLUMN(cgroup_id), FREE_COLUMN(argument), FREE_COLUMN(has_argument),
      FREE_COLUMN(has_cgroup);
#undef FREE_COLUMN
  *rows = (struct rows){0};
}

/* -1: there is no room. */
int32_t number_of_name(profile *p, const char *name) {
  uint32_t hash = hash_bytes(name, NAME_BYTES, 0), cursor, at;
  for (at = table_first(&p->name_table, hash, &cursor); at != NONE;
       at = table_next(&p->name_table, hash, &cursor))
    if (memcmp(p->names + (size_t)at * NAME_BYTES, name, NAME_BYTES) == 0) return (int32_t)at;
  if (!table_reserve(p, &p->name_table) ||
      !grow(p, (void **)&p->names, &p->name_capacity, p->name_count + 1, NAME_BYTES))
    return -1;
  memcpy(p->names + (size_t)p->name_count * NAME_BYTES, name, NAME_BYTES);
  table_add(&p->name_table, hash, p->name_count);
  return (int32_t)p->name_count++;
}

/* What a task is called that has no name: as perf writes it. */
int32_t number_of_task(profile *p, int32_t tid) {
  char name[NAME_BYTES] = {0};
  snprintf(name, sizeof name, ":%d", tid);
  return number_of_name(p, name);
}

int32_t number_of_cgroup(profile *p, int32_t cgroup) {
  uint32_t hash = (uint32_t)mix((uint32_t)cgroup + 1ull), cursor, at;
  if (cgroup < 0) return -1;
  for (at = table_first(&p->cgroup_table, hash, &cursor); at != NONE;
       at = table_next(&p->cgroup_table, hash, &cursor))
    if (p->cgroups[at] == cgroup) return (int32_t)at;
  if (!table_reserve(p, &p->cgroup_table) ||
      !grow(p, (void **)&p->cgroups, &p->cgroup_capacity, p->cgroup_count + 1, 4))
    return -1;
  p->cgroups[p->cgroup_count] = cgroup;
  table_add(&p->cgroup_table, hash, p->cgroup_count);
  return (int32_t)p->cgroup_count++;
}

/* Before something is marked as asked for: what was never asked would never be answered. */
bool may_ask(profile *p) {
  return grow(p, (void **)&p->questions, &p->question_capacity, p->question_count + 1,
              sizeof *p->questions);
}

void ask(profile *p, const struct question *question) {
  p->questions[p->question_count++] = *question;
}

/* False: there is no room for its name. */
bool finish_row(profile *p, uint32_t row) {
  struct rows *rows = &p->rows;
  if (rows->name[row] < 0) {
    const struct task *task = find_task(p, rows->tid[row]);
    rows->name[row] = task != NULL && task->has_name ? number_of_name(p, task->name)
                                                     : number_of_task(p, rows->tid[row]);
  }
  if (rows->cgroup[row] == -2) {
    const struct process *process = find_process(p, rows->pid[row], false);
    rows->cgroup[row] =
        process != NULL && process->is_cgroup_known ? number_of_cgroup(p, process->cgroup) : -1;
  }
  return rows->name[row] >= 0;
}

/* Which rows have a cgroup, eight to a byte; those without get a number that is in the list all the
 * same. */
void finish_cgroups(struct rows *rows) {
  rows->without_cgroup = 0;
  for (uint32_t row = 0; row < rows->count; row++) {
    bool has_cgroup = rows->cgroup[row] >= 0;
    uint8_t bit = (uint8_t)(1u << row % 8);
    uint8_t before = row % 8 == 0 ? 0 : rows->has_cgroup[row / 8];
    rows->has_cgroup[row / 8] = has_cgroup ? before | bit : before;
    rows->without_cgroup += !has_cgroup;
    if (!has_cgroup) rows->cgroup[row] = 0;
  }
}

void move_row(struct rows *rows, uint32_t from, uint32_t to) {
  rows->time[to] = rows->time[from];
  rows->cpu[to] = rows->cpu[from];
  rows->pid[to] = rows->pid[from];
  rows->tid[to] = rows->tid[from];
  rows->name[to] = rows->name[from];
  rows->cgroup[to] = rows->cgroup[from];
  rows->stack[to] = rows->stack[from];
  rows->event[to] = rows->event[from];
  rows->cgroup_id[to] = rows->cgroup_id[from];
  rows->argument[to] = rows->argument[from];
  rows->has_argument[to] = rows->has_argument[from];
}
