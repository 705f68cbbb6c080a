/* The turn: records in the order of time in, rows and questions out; then answers, until every row
 * has its stack. */
#include "profile.h"
#include "perf_abi.h"

#include <string.h>

#define MOST_KEPT_BYTES (1u << 20) /* of a queue in which nothing waits */

/* ---- a sample becomes a row ------------------------------------------------------------------ */

static void ask_about_process(profile *p, struct process *process, struct task *task,
                              const struct sample *sample) {
  struct question question = {.pid = sample->pid, .tid = sample->tid, .parent = process->parent};
  if (!task->has_name && task->asked_turn != p->turn && may_ask(p)) {
    task->asked_turn = p->turn;
    question.kind = ASK_NAME;
    ask(p, &question);
  }
  if (!process->is_cgroup_known && process->asked_turn != p->turn && may_ask(p)) {
    process->asked_turn = p->turn;
    question.kind = ASK_CGROUP;
    ask(p, &question);
  }
}

/* Never before 1970 nor in the last half of what 63 bits can say: a file may hold any time. */
static int64_t row_time(const profile *p, uint64_t time) {
  int64_t most = INT64_MAX / 2, moved = p->offset_ns;
  if (p->has_time) moved += time < (uint64_t)most ? (int64_t)time : most;
  return moved < 0 ? 0 : moved > most ? most : moved;
}

static void put_aside(profile *p, struct pending *pending, const uint64_t *words) {
  size_t bytes = sizeof *p->pending_words;
  size_t wanted = p->pending_words_count + pending->length;
  if (wanted > p->pending_words_capacity) {
    size_t capacity = p->pending_words_capacity < 4096 ? 4096 : p->pending_words_capacity;
    while (capacity < wanted) capacity *= 2;
    uint64_t *made =
        resize(p, p->pending_words, p->pending_words_capacity * bytes, capacity * bytes);
    if (made == NULL) goto refused;
    p->pending_words = made;
    p->pending_words_capacity = capacity;
  }
  if (!grow(p, (void **)&p->pending, &p->pending_capacity, p->pending_count + 1,
            sizeof *p->pending))
    goto refused;
  pending->words = p->pending_words_count;
  if (pending->length != 0)
    memcpy(p->pending_words + pending->words, words, pending->length * bytes);
  p->pending_words_count += pending->length;
  image_hold(pending->image);
  p->pending[p->pending_count++] = *pending;
  return;
refused:
  p->rows.stack[pending->row] = stack_of(p, pending, words, true);
}

static void replay_sample(profile *p, const struct sample *sample, const uint64_t *words,
                          uint32_t length) {
  struct process *process = find_process(p, sample->pid, true);
  struct task *task = make_task(p, sample->pid, sample->tid);
  p->samples++;
  if (process == NULL || task == NULL || !reserve_row(p)) {
    p->refused++;
    return;
  }
  struct pending pending = {.image = image_of(p, process),
                            .row = p->rows.count,
                            .event = sample->event,
                            .pid = sample->pid,
                            .tenant = tenant_of(p, process),
                            .length = length};
  struct rows *rows = &p->rows;
  rows->time[pending.row] = row_time(p, sample->time);
  if (p->turn_samples++ == 0) p->first_ns = rows->time[pending.row];
  p->last_ns = rows->time[pending.row];
  rows->cpu[pending.row] =
      (int16_t)(sample->cpu >= 0 && sample->cpu <= INT16_MAX ? sample->cpu : -1);
  rows->pid[pending.row] = sample->pid;
  rows->tid[pending.row] = sample->tid;
  /* Where nobody can be asked, who has no name yet has none. */
  rows->name[pending.row] = task->has_name ? number_of_name(p, task->name)
                            : p->asks      ? -1
                                           : number_of_task(p, sample->tid);
  rows->event[pending.row] = (int32_t)sample->event;
  rows->cgroup_id[pending.row] = sample->cgroup_id;
  rows->argument[pending.row] = sample->argument;
  rows->has_argument[pending.row] = sample->has_argument;
  /* No functions are charged before it is known to whom. */
  int32_t stack = pending.tenant == STRANGERS ? WAITS : stack_of(p, &pending, words, false);
  if (stack == DROPPED) {
    p->idle++;
    return; /* the row is not counted, so the next one takes its place */
  }
  if (p->asks) ask_about_process(p, process, task, sample);
  rows->cgroup[pending.row] = process->is_cgroup_known ? number_of_cgroup(p, process->cgroup) : -2;
  rows->stack[pending.row] = stack;
  rows->count++;
  if (stack == WAITS) put_aside(p, &pending, words);
}

static void pass_on(profile *p, const struct waiting *waiting, const uint8_t *record, uint32_t size,
                    int32_t cpu) {
  size_t wanted = p->passed_on_length + 16 + size;
  if (wanted > p->passed_on_capacity) {
    size_t capacity = p->passed_on_capacity < 4096 ? 4096 : p->passed_on_capacity;
    while (capacity < wanted) capacity *= 2;
    uint8_t *made = resize(p, p->passed_on, p->passed_on_capacity, capacity);
    if (made == NULL) {
      p->refused++;
      return;
    }
    p->passed_on = made;
    p->passed_on_capacity = capacity;
  }
  uint8_t *at = p->passed_on + p->passed_on_length;
  memcpy(at, &waiting->time, 8);
  memcpy(at + 8, &cpu, 4);
  memcpy(at + 12, &size, 4);
  memcpy(at + 16, record, size);
  p->passed_on_length = wanted;
}

static void replay_record(profile *p, const struct waiting *waiting) {
  const uint8_t *record = p->queue.bytes + waiting->at;
  uint32_t kind, event = 0;
  uint16_t size;
  memcpy(&kind, record, 4);
  memcpy(&size, record + 6, 2);
  int32_t cpu = waiting->cpu;
  if (kind == RECORD_SAMPLE) {
    struct sample sample;
    uint64_t words[2];
    bool is_within = waiting->time >= p->window_from && waiting->time < p->window_to;
    event = event_of(p, record, size);
    if (event == NONE ||
        (!p->events[event].is_passed_on && !decode_sample(p, record, size, event, &sample))) {
      p->malformed++;
    } else if (p->events[event].is_passed_on == LEFT_OUT) {
      p->event_counts[event].left_out += is_within;
    } else if (p->events[event].is_passed_on) {
      pass_on(p, waiting, record, size, cpu);
    } else if (is_within) {
      sample.time = waiting->time;
      if (cpu >= 0) sample.cpu = cpu;
      if (sample.extra_length != 0 && sample.length != 0) {
        /* A chain and an innermost user address behind it: put together where there is room for
         * both. */
        uint64_t joined[UINT16_MAX / 8 + 3];
        memcpy(joined, sample.chain, sample.length * 8ull);
        memcpy(joined + sample.length, sample.extra, sizeof words);
        replay_sample(p, &sample, joined, sample.length + sample.extra_length);
      } else if (sample.extra_length != 0) {
        memcpy(words, sample.extra, sizeof words);
        replay_sample(p, &sample, words, 2);
      } else {
        replay_sample(p, &sample, (const uint64_t *)(const void *)sample.chain, sample.length);
      }
    }
    return;
  }
  int32_t pid;
  memcpy(&pid, record + 8, kind == RECORD_THROTTLE ? 0 : 4);
  bool is_task = kind == RECORD_COMM || kind == RECORD_FORK || kind == RECORD_EXIT;
  bool is_mapping = kind == RECORD_MMAP || kind == RECORD_MMAP2;
  if (is_task || (is_mapping && pid != -1)) apply_record(p, record, size);
  else pass_on(p, waiting, record, size, cpu >= 0 ? cpu : trailer_cpu(p, record, size));
}

/* ---- the turn, as Python calls it ------------------------------------------------------------ */

PUBLIC void profile_window(profile *p, uint64_t from_ns, uint64_t to_ns) {
  p->window_from = from_ns;
  p->window_to = to_ns;
}

static uint16_t size_of(const uint8_t *record) {
  uint16_t size;
  memcpy(&size, record + 6, 2);
  return size;
}

/* The bytes of records that wait on move to the front. One that waits for long must not keep all
 * that came after it. */
static void keep_waiting(profile *p) {
  struct queue *queue = &p->queue;
  uint64_t wanted = 0, first_at = queue->length, at = 0;
  /* Many short turns must not move what waits each time. */
  if (queue->done == 0 || 2 * queue->done < queue->count) return;
  if (queue->done == queue->count && queue->capacity > MOST_KEPT_BYTES) {
    queue_free(p);
    return;
  }
  queue->count -= queue->done;
  memmove(queue->records, queue->records + queue->done, queue->count * sizeof *queue->records);
  queue->done = 0;
  for (size_t i = 0; i < queue->count; i++) {
    wanted += size_of(queue->bytes + queue->records[i].at);
    if (queue->records[i].at < first_at) first_at = queue->records[i].at;
  }
  uint64_t kept = queue->length - first_at;
  uint8_t *packed =
      wanted != 0 && kept > 2 * wanted && kept > 1 << 16 ? resize(p, NULL, 0, 2 * wanted) : NULL;
  if (packed == NULL) {
    if (kept != 0) memmove(queue->bytes, queue->bytes + first_at, kept);
    for (size_t i = 0; i < queue->count; i++) queue->records[i].at -= first_at;
    queue->length = kept;
    return;
  }
  for (size_t i = 0; i < queue->count; i++) {
    uint16_t size = size_of(queue->bytes + queue->records[i].at);
    memcpy(packed + at, queue->bytes + queue->records[i].at, size);
    queue->records[i].at = at;
    at += size;
  }
  resize(p, queue->bytes, queue->capacity, 0);
  queue->bytes = packed;
  queue->capacity = 2 * wanted;
  queue->length = at;
}

/* Replays all records up to a time. `offset_ns` is added to the times of rows. */
PUBLIC void profile_replay(profile *p, uint64_t until_ns, int64_t offset_ns) {
  struct queue *queue = &p->queue;
  drop_pending(p); /* of a turn that was not finished; its rows are gone */
  p->rows.count = p->name_count = p->cgroup_count = p->question_count = 0;
  p->passed_on_length = 0;
  p->turn_samples = 0;
  /* What a burst needed is not kept from all that comes after it. */
  if (p->used_bytes > p->limit_bytes / 2) turn_free(p);
  table_clear(&p->name_table);
  table_clear(&p->cgroup_table);
  p->offset_ns = offset_ns < -INT64_MAX / 2  ? -INT64_MAX / 2
                 : offset_ns > INT64_MAX / 2 ? INT64_MAX / 2
                                             : offset_ns;
  sort_queue(p);
  size_t most = p->turn_records == 0 || queue->count - queue->done < p->turn_records
                    ? queue->count
                    : queue->done + p->turn_records;
  while (queue->done < most && queue->records[queue->done].time <= until_ns)
    replay_record(p, &queue->records[queue->done++]);
  keep_waiting(p);
}

/* After answers: the rows that waited for them. `is_forced`: whatever is still unknown stays so.
 * Returns how many still wait. */
PUBLIC uint32_t profile_resume(profile *p, uint32_t is_forced) {
  uint32_t left = 0, count = p->pending_count;
  p->question_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    struct pending pending = p->pending[i];
    if (pending.tenant == STRANGERS)
      pending.tenant = tenant_of(p, find_process(p, pending.pid, false));
    if (pending.tenant == STRANGERS) pending.tenant = NOBODY;
    const uint64_t *words = pending.length != 0 ? p->pending_words + pending.words : NULL;
    int32_t stack = stack_of(p, &pending, words, is_forced != 0);
    p->rows.stack[pending.row] = stack;
    if (stack == WAITS) {
      p->pending[left++] = pending;
      continue;
    }
    p->idle += stack == DROPPED;
    image_release(p, pending.image);
  }
  p->pending_count = left;
  if (left == 0) p->pending_words_count = 0;
  return left;
}

/* Ends the turn: every row has its name, cgroup and stack, idle ones are gone, and so are processes
 * that ended a turn ago. */
PUBLIC void profile_finish(profile *p) {
  uint32_t kept = 0;
  if (p->pending_count != 0) profile_resume(p, 1);
  for (uint32_t row = 0; row < p->rows.count; row++) {
    if (p->rows.stack[row] < 0) continue;
    if (!finish_row(p, row)) {
      p->refused++;
      continue;
    }
    if (kept != row) move_row(&p->rows, row, kept);
    kept++;
  }
  p->rows.count = kept;
  finish_cgroups(&p->rows);
  p->question_count = 0;
  for (uint32_t i = 0; i < p->tenant_count; i++) p->tenants[i].questions = 0;
  forget_exited(p);
  /* As after records that the kernel lost. A file has nobody to ask again. */
  if (p->has_refused_tasks && p->asks) profile_forget_tasks(p);
  bound_tasks(p);
  p->turn = p->turn == UINT32_MAX ? 1 : p->turn + 1;
  bound_blocks(p);
  relieve(p);
}
