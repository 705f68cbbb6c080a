/* Who is who: names of threads, images and cgroups of processes, kept from the records and from
 * what Python answers. */
#include "profile.h"
#include "perf_abi.h"

#include <string.h>

static uint32_t hash_number(int32_t number) {
  return (uint32_t)(mix((uint32_t)number + 1ull) >> 8);
}

/* Always one that is there: a number that began to be valid between a charge and its discharge
 * would unbalance both. */
uint32_t tenant_of(const profile *p, const struct process *process) {
  if (p->asks && process != NULL && process->cgroup < 0 && !process->is_cgroup_known)
    return STRANGERS;
  uint32_t tenant =
      process == NULL || process->cgroup < 0 ? NOBODY : (uint32_t)process->cgroup + FIRST_CGROUP;
  return tenant < p->tenant_count ? tenant : NOBODY;
}

/* ---- tasks and processes --------------------------------------------------------------------- */

struct task *find_task(profile *p, int32_t tid) {
  uint32_t hash = hash_number(tid), cursor;
  for (uint32_t at = table_first(&p->task_table, hash, &cursor); at != NONE;
       at = table_next(&p->task_table, hash, &cursor))
    if (p->tasks[at].tid == tid) return &p->tasks[at];
  return NULL;
}

struct task *make_task(profile *p, int32_t pid, int32_t tid) {
  struct task *known = find_task(p, tid);
  if (known != NULL) {
    known->pid = pid;
    return known;
  }
  if (!table_reserve(p, &p->task_table)) return NULL;
  uint32_t at = p->task_free;
  if (at != NONE) {
    p->task_free = p->tasks[at].next_free;
  } else {
    if (!grow(p, (void **)&p->tasks, &p->task_capacity, p->task_count + 1, sizeof *p->tasks))
      return NULL;
    at = p->task_count++;
  }
  p->tasks[at] = (struct task){.tid = tid, .pid = pid};
  table_add(&p->task_table, hash_number(tid), at);
  return &p->tasks[at];
}

struct process *find_process(profile *p, int32_t pid, bool make) {
  uint32_t hash = hash_number(pid), cursor, at;
  for (at = table_first(&p->process_table, hash, &cursor); at != NONE;
       at = table_next(&p->process_table, hash, &cursor))
    if (p->processes[at].pid == pid) return &p->processes[at];
  if (!make || !table_reserve(p, &p->process_table)) return NULL;
  at = p->process_free;
  if (at != NONE) {
    p->process_free = p->processes[at].next_free;
  } else {
    if (!grow(p, (void **)&p->processes, &p->process_capacity, p->process_count + 1,
              sizeof *p->processes))
      return NULL;
    at = p->process_count++;
  }
  p->processes[at] = (struct process){.pid = pid, .cgroup = -1};
  table_add(&p->process_table, hash, at);
  return &p->processes[at];
}

static void forget_task(profile *p, int32_t tid) {
  struct task *task = find_task(p, tid);
  if (task == NULL) return;
  uint32_t at = (uint32_t)(task - p->tasks);
  table_remove(&p->task_table, hash_number(tid), at);
  task->next_free = p->task_free;
  p->task_free = at;
}

static void forget_process(profile *p, int32_t pid) {
  struct process *process = find_process(p, pid, false);
  if (process == NULL) return;
  uint32_t at = (uint32_t)(process - p->processes);
  image_drop(p, process->image);
  process->image = NULL;
  table_remove(&p->process_table, hash_number(pid), at);
  process->next_free = p->process_free;
  p->process_free = at;
}

static void set_name(struct task *task, const char *name, size_t length) {
  memset(task->name, 0, NAME_BYTES);
  memcpy(task->name, name, length < NAME_BYTES ? length : NAME_BYTES - 1);
  task->has_name = true;
}

/* A sample of a process that ended may still come, from another core's ring: its end counts one
 * turn later. */
void forget_exited(profile *p) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->exited_count; i++) {
    struct exited one = p->exited[i];
    const struct task *task = find_task(p, one.tid);
    const struct process *process = one.pid == one.tid ? find_process(p, one.pid, false) : NULL;
    bool is_recent = (task != NULL && task->exit_turn == p->turn) ||
                     (process != NULL && process->exit_turn == p->turn);
    if (is_recent) {
      p->exited[kept++] = one;
      continue;
    }
    if (task != NULL && task->exit_turn != 0) forget_task(p, one.tid);
    if (process != NULL && process->exit_turn != 0) forget_process(p, one.pid);
  }
  p->exited_count = kept;
}

/* ---- the share of a tenant ------------------------------------------------------------------- */

#define TASK_BYTES 64 /* with its place in the table */

/* The tenant of a task or a process that is kept; NULL for the place of one that was forgotten. */
static struct tenant *tenant_of_task(profile *p, const struct task *task) {
  if (find_task(p, task->tid) != task) return NULL;
  return &p->tenants[tenant_of(p, find_process(p, task->pid, false))];
}

static struct tenant *tenant_of_process(profile *p, const struct process *process) {
  return find_process(p, process->pid, false) == process ? &p->tenants[tenant_of(p, process)]
                                                         : NULL;
}

/* What is known of tasks is a cache of /proc, which whoever starts threads could fill. A tenant
 * that has more of them than its share loses them all, and who of them still runs is asked for
 * again. They are counted only if they are many. */
void bound_tasks(profile *p) {
  uint64_t most = p->tenant_limit_bytes / 4 / TASK_BYTES;
  struct tenant *tenant;
  if (!p->asks || p->task_table.count + p->process_table.count <= most) return;
  for (uint32_t i = 0; i < p->tenant_count; i++) p->tenants[i].tasks = 0;
  for (uint32_t i = 0; i < p->task_count; i++)
    if ((tenant = tenant_of_task(p, &p->tasks[i])) != NULL) tenant->tasks++;
  for (uint32_t i = 0; i < p->process_count; i++)
    if ((tenant = tenant_of_process(p, &p->processes[i])) != NULL) tenant->tasks++;
  for (uint32_t i = 0; i < p->tenant_count; i++)
    if (p->tenants[i].tasks > most) note_bounded(p, i);
  for (uint32_t i = 0; i < p->task_count; i++)
    if ((tenant = tenant_of_task(p, &p->tasks[i])) != NULL && tenant->tasks > most)
      forget_task(p, p->tasks[i].tid);
  for (uint32_t i = 0; i < p->process_count; i++)
    if ((tenant = tenant_of_process(p, &p->processes[i])) != NULL && tenant->tasks > most)
      forget_process(p, p->processes[i].pid);
}

/* ---- records --------------------------------------------------------------------------------- */

struct task_ids {
  /* FORK and EXIT: pid, parent, tid, parent's tid; COMM and MMAP: pid, tid. */
  int32_t pid, second, tid, fourth;
};

static size_t bounded_length(const uint8_t *text, const uint8_t *end) {
  const uint8_t *zero = memchr(text, 0, (size_t)(end - text));
  return (size_t)((zero == NULL ? end : zero) - text);
}

static void apply_mapping(profile *p, const uint8_t *record, uint32_t size, uint32_t kind,
                          uint16_t misc, int32_t pid) {
  struct process *process = find_process(p, pid, !p->asks);
  /* Of a process that is older than we are, all mappings are asked for at its first sample: this
   * one among them. */
  bool is_asked_for =
      p->asks && (process == NULL || process->image == NULL || !process->image->is_complete);
  if ((misc & MISC_MMAP_DATA) || process == NULL || is_asked_for) return;
  uint64_t start, length, offset;
  memcpy(&start, record + 16, 8);
  memcpy(&length, record + 24, 8);
  memcpy(&offset, record + 32, 8);
  struct module key = {0};
  const uint8_t *path = record + (kind == RECORD_MMAP2 ? 72 : 40);
  if (kind == RECORD_MMAP2 && (misc & MISC_MMAP_BUILD_ID)) {
    key.build_id_length = record[40] <= BUILD_ID_BYTES ? record[40] : 0;
    memcpy(key.build_id, record + 44, BUILD_ID_BYTES);
  } else if (kind == RECORD_MMAP2) {
    memcpy(&key.major, record + 40, 4);
    memcpy(&key.minor, record + 44, 4);
    memcpy(&key.inode, record + 48, 8);
  }
  profile_map(p, pid, start, length > UINT64_MAX - start ? UINT64_MAX : start + length, offset,
              &key, (const char *)path, bounded_length(path, record + size));
}

static void apply_name(profile *p, const uint8_t *record, uint32_t size, uint16_t misc,
                       struct task_ids ids) {
  bool is_exec = misc & MISC_COMM_EXEC;
  struct task *task = make_task(p, ids.pid, ids.second);
  if (task != NULL) {
    set_name(task, (const char *)record + 16, bounded_length(record + 16, record + size));
    /* A thread that execs takes the number of its leader, which exited for it just now. */
    if (is_exec) task->exit_turn = 0;
  }
  if (!is_exec && ids.pid != ids.second) return;
  struct process *process = find_process(p, ids.pid, is_exec);
  if (process == NULL) return;
  /* Who names itself has just been set up, and may have been put into its cgroup before that. */
  process->is_cgroup_known = false;
  if (is_exec) {
    process->exit_turn = 0;
    image_drop(p, process->image);
    process->image = new_image(p, tenant_of(p, process), true);
  }
}

static void apply_fork(profile *p, uint16_t misc, struct task_ids ids) {
  const struct task *from = find_task(p, ids.fourth);
  struct task inherited = from != NULL ? *from : (struct task){0};
  struct task *task = make_task(p, ids.pid, ids.tid);
  if (task != NULL) {
    task->has_name = inherited.has_name;
    task->asked_turn = 0;
    task->exit_turn = 0;
    memcpy(task->name, inherited.name, NAME_BYTES);
  }
  if (ids.pid == ids.second) return;
  struct process *process = find_process(p, ids.pid, true);
  const struct process *parent = find_process(p, ids.second, false);
  if (process == NULL) return;
  image_drop(p, process->image);
  process->image = NULL;
  process->exit_turn = 0;
  process->parent = ids.second;
  process->is_cgroup_known = false;
  process->cgroup = parent != NULL ? parent->cgroup : -1;
  if (parent != NULL && parent->image != NULL && !(misc & MISC_FORK_EXEC)) {
    process->image = parent->image;
    process->image->processes++;
  }
}

static void apply_exit(profile *p, struct task_ids ids) {
  struct task *task = find_task(p, ids.tid);
  struct process *process = ids.pid == ids.tid ? find_process(p, ids.pid, false) : NULL;
  if (task == NULL && process == NULL) return;
  if (!grow(p, (void **)&p->exited, &p->exited_capacity, p->exited_count + 1, sizeof *p->exited))
    return;
  if (task != NULL) task->exit_turn = p->turn;
  if (process != NULL) process->exit_turn = p->turn;
  p->exited[p->exited_count++] = (struct exited){ids.pid, ids.tid};
}

/* A record of at least the size that records.c wants of its kind. */
void apply_record(profile *p, const uint8_t *record, uint32_t size) {
  uint32_t kind;
  uint16_t misc;
  struct task_ids ids = {0};
  memcpy(&kind, record, 4);
  memcpy(&misc, record + 4, 2);
  memcpy(&ids, record + 8, kind == RECORD_FORK || kind == RECORD_EXIT ? 16 : 8);
  switch (kind) {
    case RECORD_MMAP:
    case RECORD_MMAP2: apply_mapping(p, record, size, kind, misc, ids.pid); break;
    case RECORD_COMM: apply_name(p, record, size, misc, ids); break;
    case RECORD_FORK: apply_fork(p, misc, ids); break;
    case RECORD_EXIT: apply_exit(p, ids); break;
  }
}

/* ---- answers --------------------------------------------------------------------------------- */

PUBLIC void profile_map(profile *p, int32_t pid, uint64_t start, uint64_t end, uint64_t offset,
                        const struct module *key, const char *path, uint64_t path_length) {
  struct process *process = find_process(p, pid, false);
  if (process == NULL || start >= end) return;
  uint32_t tenant = tenant_of(p, process), module = find_module(p, tenant, key, path, path_length);
  struct image *image = process->image;
  /* What was asked for is added to an image that others wait with; what is mapped is not theirs. */
  if (image == NULL || image->is_complete) image = own_image(p, process);
  /* Its parent's mappings are not its own any more, and there is no room for others. */
  if (image == NULL) {
    image_drop(p, process->image);
    process->image = NULL;
    note_bounded(p, tenant);
    return;
  }
  if (!lay_over(p, image, (struct mapping){start, end, start - offset, module})) {
    image->is_bounded = true;
    note_bounded(p, tenant);
  }
}

/* Before and after the mappings that were asked for. */
PUBLIC void profile_begin_mappings(profile *p, int32_t pid) {
  struct process *process = find_process(p, pid, false);
  if (process == NULL || process->image == NULL || process->image->is_complete) return;
  process->image->count = 0;
}

PUBLIC void profile_end_mappings(profile *p, int32_t pid, uint32_t is_bounded) {
  struct process *process = find_process(p, pid, false);
  if (process == NULL || process->image == NULL) return;
  process->image->is_complete = true;
  process->image->is_bounded |= is_bounded != 0;
}

PUBLIC void profile_set_name(profile *p, int32_t tid, const char *name, uint64_t length) {
  struct task *task = find_task(p, tid);
  if (task == NULL) task = make_task(p, tid, tid);
  if (task != NULL) set_name(task, name, length);
}

/* `cgroup` is a number of the caller's, -1 if it is not known. */
PUBLIC void profile_set_cgroup(profile *p, int32_t pid, int32_t cgroup) {
  struct process *process = find_process(p, pid, false);
  if (process == NULL) return;
  process->is_cgroup_known = true;
  process->cgroup = cgroup;
  uint32_t before = p->tenant_count, capacity = before;
  bool is_new = cgroup >= 0 && cgroup < MOST_TENANTS - FIRST_CGROUP &&
                (uint32_t)cgroup + FIRST_CGROUP >= before;
  if (is_new && grow(p, (void **)&p->tenants, &capacity, (uint32_t)cgroup + FIRST_CGROUP + 1,
                     sizeof *p->tenants)) {
    memset(p->tenants + before, 0, (capacity - before) * sizeof *p->tenants);
    p->tenant_count = capacity;
  }
  move_image(p, process, tenant_of(p, process));
}

/* Tasks can be moved between cgroups without a record of it. */
PUBLIC void profile_forget_cgroups(profile *p) {
  for (uint32_t i = 0; i < p->process_count; i++) p->processes[i].is_cgroup_known = false;
}

/* After records were lost nothing that was kept from them can be trusted: it is asked for again. */
PUBLIC void profile_forget_tasks(profile *p) {
  for (uint32_t i = 0; i < p->process_table.capacity; i++) {
    uint32_t entry = p->process_table.slots[i].entry;
    if (entry != 0) image_drop(p, p->processes[entry - 1].image);
  }
  table_clear(&p->process_table);
  table_clear(&p->task_table);
  p->process_count = p->task_count = p->exited_count = 0;
  p->has_refused_tasks = false;
  p->process_free = p->task_free = NONE;
}

/* Gives up what is held for the largest tenants while the account is nearly full: it can be asked
 * for again. */
void relieve(profile *p) {
  while (p->used_bytes > p->limit_bytes / 4 * 3) {
    uint32_t largest = 0, dropped = 0;
    for (uint32_t i = 1; i < p->tenant_count; i++)
      if (p->tenants[i].charged_bytes > p->tenants[largest].charged_bytes) largest = i;
    for (uint32_t i = 0; i < p->process_count; i++) {
      struct process *process = &p->processes[i];
      if (process->image == NULL || process->image->tenant != largest ||
          process->image->processes != 1)
        continue;
      image_drop(p, process->image);
      process->image = NULL;
      dropped++;
    }
    if (dropped == 0) return;
  }
}
