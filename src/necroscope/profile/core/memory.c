/* The account of all memory, the charges of tenants, and the one hash table. */
#define _DEFAULT_SOURCE /* madvise */
#include "profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define LARGE_PAGE (2u << 20)

/* As realloc, within the limit of the account. NULL: what there was is as it was. */
void *resize(profile *p, void *old, size_t old_bytes, size_t new_bytes) {
  if (new_bytes == 0) {
    free(old);
    p->used_bytes -= old_bytes;
    return NULL;
  }
  if (new_bytes > old_bytes && new_bytes - old_bytes > p->limit_bytes - p->used_bytes) return NULL;
  void *made = realloc(old, new_bytes);
  if (made != NULL) p->used_bytes += new_bytes - old_bytes;
  return made;
}

bool grow(profile *p, void **array, uint32_t *capacity, uint32_t wanted, size_t item_bytes) {
  if (wanted <= *capacity) return true;
  uint32_t bigger = *capacity < 64 ? 64 : *capacity;
  while (bigger < wanted) {
    if (bigger > UINT32_MAX / 2) return false;
    bigger *= 2;
  }
  void *made = resize(p, *array, *capacity * item_bytes, bigger * item_bytes);
  if (made == NULL) return false;
  *array = made;
  *capacity = bigger;
  return true;
}

bool charge(profile *p, uint32_t tenant, uint64_t bytes) {
  struct tenant *charged = &p->tenants[tenant];
  if (charged->charged_bytes + bytes > p->tenant_limit_bytes) return false;
  charged->charged_bytes += bytes;
  return true;
}

void discharge(profile *p, uint32_t tenant, uint64_t bytes) {
  struct tenant *charged = &p->tenants[tenant];
  assert(bytes <= charged->charged_bytes); /* else the account is wrong */
  charged->charged_bytes -= bytes;
}

void note_bounded(profile *p, uint32_t tenant) {
  struct tenant *charged = &p->tenants[tenant];
  charged->bounded += charged->bounded != UINT32_MAX;
  p->bounded_frames++;
}

/* ---- the hash table: linear probing, at most half full, each slot with the hash that it was found
 * by  */

/* Another one in each process: names and addresses are chosen by users, who must not know which of
 * them meet in one slot. */
static uint64_t hash_seed;

void seed_hashes(void) {
  /* 16 bytes that the kernel gave this process. */
  const void *random = (const void *)getauxval(AT_RANDOM);
  if (hash_seed == 0 && random != NULL) memcpy(&hash_seed, random, sizeof hash_seed);
}

uint64_t mix(uint64_t value) {
  value ^= hash_seed;
  value ^= value >> 31;
  value *= 0x9E3779B97F4A7C15ull;
  return value ^ value >> 29;
}

uint32_t hash_bytes(const void *bytes, size_t length, uint64_t seed) {
  const uint8_t *at = bytes;
  uint64_t hash = mix(seed ^ length), word;
  for (; length >= 8; at += 8, length -= 8) {
    memcpy(&word, at, 8);
    hash = mix(hash ^ word);
  }
  word = 0;
  memcpy(&word, at, length);
  return (uint32_t)(mix(hash ^ word) >> 16);
}

static void put(struct slot *slots, uint32_t mask, struct slot slot) {
  uint32_t at = slot.hash & mask;
  while (slots[at].entry != 0) at = (at + 1) & mask;
  slots[at] = slot;
}

/* A table is filled all over at once. In pages of 4 KiB the kernel would be asked for each of them:
 * a sixth of what replaying a large file took. Refused, it is as before. */
static void use_large_pages(void *memory, size_t bytes) {
  uintptr_t from = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1);
  uintptr_t to = ((uintptr_t)memory + bytes) & ~(uintptr_t)(LARGE_PAGE - 1);
  if (to > from) madvise((void *)from, to - from, MADV_HUGEPAGE);
}

/* Room for one more. */
bool table_reserve(profile *p, struct table *table) {
  if (2 * (uint64_t)(table->count + 1) <= table->capacity) return true;
  if (table->capacity > UINT32_MAX / 4) return false;
  uint32_t capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
  struct slot *slots = resize(p, NULL, 0, capacity * sizeof *slots);
  if (slots == NULL) return false;
  use_large_pages(slots, capacity * sizeof *slots);
  memset(slots, 0, capacity * sizeof *slots);
  for (uint32_t at = 0; at < table->capacity; at++)
    if (table->slots[at].entry != 0) put(slots, capacity - 1, table->slots[at]);
  resize(p, table->slots, table->capacity * sizeof *slots, 0);
  table->slots = slots;
  table->capacity = capacity;
  return true;
}

void table_add(struct table *table, uint32_t hash, uint32_t entry) {
  put(table->slots, table->capacity - 1, (struct slot){hash, entry + 1});
  table->count++;
}

/* What follows moves up, so that no search ends too early. */
void table_remove(struct table *table, uint32_t hash, uint32_t entry) {
  if (table->capacity == 0) return;
  uint32_t mask = table->capacity - 1, at = hash & mask;
  while (table->slots[at].entry != entry + 1) {
    if (table->slots[at].entry == 0) return;
    at = (at + 1) & mask;
  }
  for (uint32_t next = (at + 1) & mask; table->slots[next].entry != 0; next = (next + 1) & mask) {
    uint32_t home = table->slots[next].hash & mask;
    if (((next - home) & mask) >= ((next - at) & mask)) {
      table->slots[at] = table->slots[next];
      at = next;
    }
  }
  table->slots[at].entry = 0;
  table->count--;
}

void table_clear(struct table *table) {
  if (table->count != 0) memset(table->slots, 0, table->capacity * sizeof *table->slots);
  table->count = 0;
}

void table_free(profile *p, struct table *table) {
  resize(p, table->slots, table->capacity * sizeof *table->slots, 0);
  *table = (struct table){0};
}

/* Asks for the memory where a search will begin. */
void table_fetch(const struct table *table, uint32_t hash) {
  if (table->capacity != 0) __builtin_prefetch(&table->slots[hash & (table->capacity - 1)]);
}

static uint32_t candidate(const struct table *table, uint32_t hash, uint32_t at, uint32_t *cursor) {
  uint32_t mask = table->capacity - 1;
  for (;; at = (at + 1) & mask) {
    if (table->slots[at].entry == 0) return NONE;
    if (table->slots[at].hash == hash) break;
  }
  *cursor = at;
  return table->slots[at].entry - 1;
}

/* Entries with this hash, one by one; the caller compares what they stand for. NONE: there is no
 * further one. */
uint32_t table_first(const struct table *table, uint32_t hash, uint32_t *cursor) {
  return table->capacity == 0 ? NONE : candidate(table, hash, hash & (table->capacity - 1), cursor);
}

uint32_t table_next(const struct table *table, uint32_t hash, uint32_t *cursor) {
  return candidate(table, hash, (*cursor + 1) & (table->capacity - 1), cursor);
}

uint64_t text_add(profile *p, const char *bytes, size_t length) {
  struct text *text = &p->text;
  if (length > text->capacity - text->length) {
    size_t capacity = text->capacity < 4096 ? 4096 : text->capacity;
    while (length > capacity - text->length) capacity *= 2;
    char *made = resize(p, text->bytes, text->capacity, capacity);
    if (made == NULL) return UINT64_MAX;
    text->bytes = made;
    text->capacity = capacity;
  }
  if (length != 0) memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
  return text->length - length;
}
