/* Records taken from rings or files, and put in the order of their time. */
#include "profile.h"
#include "perf_abi.h"

#include <string.h>

/* The fewest bytes of each record that is read; UINT32_MAX for those that are not. */
static uint32_t fewest_bytes(uint32_t kind) {
  switch (kind) {
    case RECORD_MMAP: return 40;
    case RECORD_MMAP2: return 72;
    case RECORD_COMM: return 16;
    case RECORD_FORK:
    case RECORD_EXIT: return 32;
    case RECORD_LOST: return 24;
    case RECORD_SAMPLE:
    case RECORD_LOST_SAMPLES:
    case RECORD_CGROUP: return 16;
    case RECORD_KSYMBOL: return 24;
    case RECORD_THROTTLE: return 8;
    default: return UINT32_MAX;
  }
}

/* Followed by more bytes than their size says, holding other records, or not made of words: for
 * Python. */
static bool is_special(uint32_t kind) {
  return kind == HEADER_TRACING_DATA || kind == AUXTRACE || kind == HEADER_FEATURE ||
         kind == COMPRESSED || kind == COMPRESSED2;
}

static bool reserve_waiting(profile *p, struct waiting **array, size_t *capacity, size_t wanted) {
  size_t bigger = *capacity < 1024 ? 1024 : *capacity;
  if (wanted <= *capacity) return true;
  while (bigger < wanted) bigger *= 2;
  struct waiting *made = resize(p, *array, *capacity * sizeof *made, bigger * sizeof *made);
  if (made == NULL) return false;
  *array = made;
  *capacity = bigger;
  return true;
}

static uint64_t queue_bytes(const struct queue *queue) {
  return queue->capacity +
         (queue->records_capacity + queue->spare_capacity) * sizeof *queue->records;
}

/* Room for one more record, and to sort it: records that could not be put in order would be kept
 * for ever. The queue has at most half of the account: records that take all of it leave no room
 * for the rows they should become. */
static bool queue_reserve(profile *p, size_t bytes) {
  struct queue *queue = &p->queue;
  bool must_grow = bytes > queue->capacity - queue->length ||
                   queue->count == queue->records_capacity || queue->count == queue->spare_capacity;
  if (must_grow && 2 * queue_bytes(queue) > p->limit_bytes / 2) return false;
  if (bytes > queue->capacity - queue->length) {
    size_t capacity = queue->capacity < 65536 ? 65536 : queue->capacity;
    while (bytes > capacity - queue->length) capacity *= 2;
    uint8_t *made = resize(p, queue->bytes, queue->capacity, capacity);
    if (made == NULL) return false;
    queue->bytes = made;
    queue->capacity = capacity;
  }
  return reserve_waiting(p, &queue->spare, &queue->spare_capacity, queue->count + 1) &&
         reserve_waiting(p, &queue->records, &queue->records_capacity, queue->count + 1);
}

static void enqueue(profile *p, const uint8_t *record, uint32_t kind, uint32_t size, int32_t cpu) {
  uint64_t time;
  p->sequence++;
  if (size < fewest_bytes(kind)) {
    p->malformed += kind == RECORD_SAMPLE;
    return;
  }
  if (!time_of(p, record, size, kind, &time)) {
    p->malformed++;
    return;
  }
  if (!queue_reserve(p, size)) {
    p->refused++;
    p->has_refused_tasks |= kind != RECORD_SAMPLE;
    return;
  }
  struct queue *queue = &p->queue;
  memcpy(queue->bytes + queue->length, record, size);
  queue->is_sorted &= queue->count == queue->done || time >= queue->records[queue->count - 1].time;
  queue->records[queue->count++] = (struct waiting){time, p->sequence, queue->length, cpu};
  if (kind == RECORD_SAMPLE) p->event_counts[event_of(p, record, size)].queued++;
  queue->length += size;
  if (time > p->latest_ns && time <= INT64_MAX) p->latest_ns = time;
}

/* The size of the record that begins here; 0 if it is special, impossible or not whole. */
uint32_t record_at(const uint8_t *bytes, uint64_t left, uint32_t *kind) {
  uint16_t size;
  if (left < 8) return 0;
  memcpy(kind, bytes, 4);
  memcpy(&size, bytes + 6, 2);
  return size < 8 || size % 8 != 0 || size > left || is_special(*kind) ? 0 : size;
}

/* perf reads all rings in turn. When it has done so, all that is older than the end of the turn
 * before has come. */
static void end_round(profile *p) {
  memmove(p->round_ends, p->round_ends + 1, sizeof p->round_ends - sizeof *p->round_ends);
  p->round_ends[ROUND_ENDS - 1] = p->latest_ns;
  p->rounds++;
  p->round_bytes = 0;
}

/* Queues whole records; returns how many bytes they were. */
PUBLIC uint64_t profile_feed(profile *p, const uint8_t *bytes, uint64_t length, int32_t cpu) {
  uint64_t at = 0;
  uint32_t kind, size;
  while ((size = record_at(bytes + at, length - at, &kind)) != 0) {
    p->round_bytes += size;
    if (kind == FINISHED_ROUND || p->round_bytes > MOST_ROUND_BYTES) end_round(p);
    if (kind < RECORD_USER_TYPES) enqueue(p, bytes + at, kind, size, cpu);
    at += size;
  }
  return at;
}

/* All that the kernel has written to these rings. Its side is published by `data_head`, ours by
 * `data_tail`. */
PUBLIC void profile_drain(profile *p, const struct ring *rings, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint8_t *base = rings[i].base, *data = base + rings[i].page_bytes;
    uint64_t *head_at = (uint64_t *)(void *)(base + RING_HEAD_OFFSET), size = rings[i].data_bytes;
    uint64_t head = __atomic_load_n(head_at, __ATOMIC_ACQUIRE), tail = head_at[1];
    if (head - tail > size) tail = head; /* cannot be; never read what is not ours */
    while (tail != head) {
      uint64_t from = tail % size, left = head - tail,
               straight = size - from < left ? size - from : left;
      uint64_t read = profile_feed(p, data + from, straight, rings[i].cpu);
      tail += read;
      if (read == straight) continue;
      if (straight == left) break;
      /* A record that begins at the end of the ring and goes on at its start. */
      uint8_t joined[UINT16_MAX + 1];
      uint16_t record_bytes = 0;
      uint64_t rest = straight - read;
      if (rest >= 8) memcpy(&record_bytes, data + from + read + 6, 2);
      if (rest < 8 || record_bytes <= rest || record_bytes > left - read) break;
      memcpy(joined, data + from + read, rest);
      memcpy(joined + rest, data, record_bytes - rest);
      if (profile_feed(p, joined, record_bytes, rings[i].cpu) != record_bytes) break;
      tail += record_bytes;
    }
    __atomic_store_n(head_at + 1, head, __ATOMIC_RELEASE);
  }
}

/* When nothing waits: what a burst needed is not kept from all that comes after it. */
void queue_free(profile *p) {
  struct queue *queue = &p->queue;
  resize(p, queue->bytes, queue->capacity, 0);
  resize(p, queue->records, queue->records_capacity * sizeof *queue->records, 0);
  resize(p, queue->spare, queue->spare_capacity * sizeof *queue->spare, 0);
  *queue = (struct queue){.is_sorted = true};
}

static bool is_before(const struct waiting *one, const struct waiting *other) {
  return one->time != other->time ? one->time < other->time : one->sequence < other->sequence;
}

static size_t run_end(const struct waiting *records, size_t from, size_t count) {
  size_t at = from + 1;
  while (at < count && !is_before(&records[at], &records[at - 1])) at++;
  return at < count ? at : count;
}

static void merge(const struct waiting *one, const struct waiting *one_end,
                  const struct waiting *other, const struct waiting *other_end,
                  struct waiting *into) {
  while (one < one_end && other < other_end) *into++ = is_before(other, one) ? *other++ : *one++;
  while (one < one_end) *into++ = *one++;
  while (other < other_end) *into++ = *other++;
}

/* By merging neighbouring runs: each ring is sorted, and so is most of a file. */
void sort_queue(profile *p) {
  struct queue *queue = &p->queue;
  size_t count = queue->count;
  if (queue->is_sorted) return;
  if (queue->done != 0) { /* what was replayed has no place among the others */
    queue->count = count -= queue->done;
    memmove(queue->records, queue->records + queue->done, count * sizeof *queue->records);
    queue->done = 0;
  }
  for (size_t runs = 2; runs > 1;) {
    runs = 0;
    for (size_t from = 0; from < count; runs++) {
      size_t middle = run_end(queue->records, from, count);
      size_t end = middle < count ? run_end(queue->records, middle, count) : count;
      merge(queue->records + from, queue->records + middle, queue->records + middle,
            queue->records + end, queue->spare + from);
      from = end;
    }
    struct waiting *sorted = queue->spare;
    queue->spare = queue->records;
    queue->records = sorted;
    size_t capacity = queue->spare_capacity;
    queue->spare_capacity = queue->records_capacity;
    queue->records_capacity = capacity;
  }
  queue->is_sorted = true;
}
