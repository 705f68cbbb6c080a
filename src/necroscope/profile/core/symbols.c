/* Functions of an ELF file: which one lies where in a block of 16 KiB of the file, from its symbol
 * tables (include/uapi/linux/elf.h).
 *
 * A file is anybody's: every count, place and address in it is taken for a lie. A table is sorted
 * once; what its symbols mean (which of several is shown, where one without a size ends) is worked
 * out for the block that is asked for. Names stay in the file.
 */
#define _GNU_SOURCE /* pread */
#include "profile.h"
#include "symbols.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A longer one is cut, and one byte too long to be demangled (symbol_names.MANGLED_LIMIT). */
#define NAME_LIMIT 1025
/* A function may lie inside another's range (asm entry points): so many earlier starts may reach an
 * address. */
#define LOOK_BACK 8
#define STARTS_BEFORE 16 /* some of those are not shown */
#define BEHIND 3
#define WINDOW_BYTES 4096
#define MOST_TABLES 4

/* Where the bytes of the file lie in memory. */
struct range {
  uint64_t offset, size, address;
};

/* ---- names ----------------------------------------------------------------------------------- */

/* A piece of a string table that was read last: names of neighbours are neighbours there most of
 * the time. */
struct window {
  const struct symbols *table;
  const char *strings; /* all of the table's, or NULL */
  uint64_t from, length;
  char bytes[WINDOW_BYTES];
  int file;
};

/* The name up to the version that the linker adds (`memcpy@@GLIBC_2.14`); its length is 0 if there
 * is none. */
static const char *name_of(struct window *window, const struct symbols *table, uint32_t place,
                           uint32_t *length) {
  const char *name = "";
  uint64_t most = 0;
  *length = 0;
  if (place >= table->strings_bytes) return name;
  if (window->strings != NULL) {
    name = window->strings + place;
    most = table->strings_bytes - place;
  } else {
    bool is_held =
        window->table == table && place >= window->from && place < window->from + window->length;
    /* A name that reaches the end of what is held is read from its start. */
    if (!is_held || (memchr(window->bytes + (place - window->from), 0,
                            window->length - (place - window->from)) == NULL &&
                     place != window->from)) {
      uint64_t wanted =
          table->strings_bytes - place < WINDOW_BYTES ? table->strings_bytes - place : WINDOW_BYTES;
      ssize_t got = pread(window->file, window->bytes, wanted, (off_t)(table->strings_at + place));
      window->table = table;
      window->from = place;
      window->length = got < 0 ? 0 : (uint64_t)got;
    }
    name = window->bytes + (place - window->from);
    most = window->length - (place - window->from);
  }
  if (most > NAME_LIMIT) most = NAME_LIMIT;
  while (*length < most && name[*length] != 0 && name[*length] != '@') ++*length;
  return name;
}

/* ---- the functions near an address ----------------------------------------------------------- */

struct near {
  uint64_t start, end;
  uint32_t rank, name, length; /* in `names` */
};

struct neighbours {
  struct near *near;
  uint32_t count, capacity;
  char *names;
  size_t names_length, names_capacity;
  struct window window;
};

/* The functions of one block, as they are told; and what is near, by table. */
struct found {
  struct neighbours neighbours[MOST_TABLES];
  uint64_t low;
  char *names;
  size_t names_length, names_capacity;
  uint32_t count;
  uint32_t ends[1u << BLOCK_BITS];
  uint16_t starts[1u << BLOCK_BITS];
};

static bool reserve_bytes(char **bytes, size_t *capacity, size_t wanted) {
  if (wanted <= *capacity) return true;
  size_t bigger = wanted < 4096 ? 4096 : 2 * wanted;
  char *made = realloc(*bytes, bigger);
  if (made == NULL) return false;
  *bytes = made;
  *capacity = bigger;
  return true;
}

static uint32_t first_from(const struct symbols *table, uint64_t address) {
  uint32_t low = 0, high = table->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (table->symbols[middle].start < address) low = middle + 1;
    else high = middle;
  }
  return low;
}

static bool add_near(struct neighbours *found, const struct symbols *table,
                     const struct symbol *symbol, uint64_t *covered_to) {
  bool is_label = (symbol->info & 15u) == TYPE_NONE;
  bool is_in_code =
      symbol->section < table->section_count && table->sections[symbol->section].has_code;
  if (is_label && (symbol->start < *covered_to || !is_in_code)) return true;
  uint32_t length;
  const char *name = name_of(&found->window, table, symbol->name, &length);
  /* aarch64 mapping symbols ($x, $d) are no functions, and what has no name cannot be shown. */
  if (length == 0 || name[0] == '$') return true;
  uint64_t reach = symbol->size == 0 ? 1 : symbol->size;
  uint64_t end = symbol->start > UINT64_MAX - reach ? UINT64_MAX : symbol->start + reach;
  if (!is_label) *covered_to = end;
  uint32_t underscores = name[0] != '_' ? 0 : length > 1 && name[1] == '_' ? 2 : 1;
  uint32_t rank =
      32u * is_label + 16u * (symbol->size == 0) + 4u * (symbol->info >> 4 == 0) + underscores;
  struct near *last = found->count != 0 ? &found->near[found->count - 1] : NULL;
  bool is_new = last == NULL || last->start != symbol->start;
  if (!is_new && rank >= last->rank) return true;
  if (is_new && found->count == found->capacity) {
    uint32_t capacity = found->capacity == 0 ? 256 : 2 * found->capacity;
    struct near *made = realloc(found->near, capacity * sizeof *made);
    if (made == NULL) return false;
    found->near = made;
    found->capacity = capacity;
  }
  if (!reserve_bytes(&found->names, &found->names_capacity, found->names_length + length))
    return false;
  memcpy(found->names + found->names_length, name, length);
  uint64_t section_end =
      symbol->section < table->section_count ? table->sections[symbol->section].end : UINT64_MAX;
  /* One without a size reaches to the next, but not past its section: marked by an end before its
   * start until the next is known. */
  struct near near = {symbol->start, symbol->size != 0 ? end : section_end, rank,
                      (uint32_t)found->names_length, length};
  found->names_length += length;
  found->near[is_new ? found->count++ : found->count - 1] = near;
  return true;
}

/* What may reach into the range: of symbols with one start the best, labels only where no function
 * is. */
static bool find_near(struct neighbours *found, const struct symbols *table, uint64_t low,
                      uint64_t high) {
  uint32_t first = first_from(table, low), last = first_from(table, high);
  uint64_t covered_to = 0;
  for (uint32_t i = 0; i < STARTS_BEFORE && first != 0; i++)
    if (--first != 0 && table->symbols[first - 1].start == table->symbols[first].start)
      first = first_from(table, table->symbols[first].start);
  last = table->count - last > BEHIND ? last + BEHIND : table->count;
  found->count = 0, found->names_length = 0;
  for (uint32_t i = first; i < last; i++)
    if (!add_near(found, table, &table->symbols[i], &covered_to)) return false;
  for (uint32_t i = 0; i + 1 < found->count; i++) {
    struct near *near = &found->near[i];
    if ((near->rank & 16) && near->end > near[1].start) near->end = near[1].start;
  }
  return true;
}

/* ---- a block --------------------------------------------------------------------------------- */

/* From an offset of the file on there is this function; an empty name is none. */
static bool put_function(struct found *found, uint64_t offset, const char *name, uint32_t length) {
  uint32_t begin = found->count > 1 ? found->ends[found->count - 2] : 0;
  bool is_same_length = found->count != 0 && found->ends[found->count - 1] - begin == length;
  if (is_same_length && (length == 0 || memcmp(found->names + begin, name, length) == 0))
    return true;
  if (!reserve_bytes(&found->names, &found->names_capacity, found->names_length + length + 1))
    return false;
  memcpy(found->names + found->names_length, name, length);
  found->names_length += length;
  found->starts[found->count] = (uint16_t)(offset - found->low);
  found->ends[found->count++] = (uint32_t)found->names_length;
  return true;
}

/* The function at an address, and where that may change: at the next start or end. */
static const struct near *near_at(const struct neighbours *found, uint64_t address, uint32_t *after,
                                  uint64_t *change) {
  while (*after < found->count && found->near[*after].start <= address) ++*after;
  const struct near *around = NULL;
  if (*after < found->count && found->near[*after].start < *change)
    *change = found->near[*after].start;
  for (uint32_t i = *after; i > 0 && *after - i < LOOK_BACK; i--) {
    const struct near *near = &found->near[i - 1];
    if (near->end <= address) continue;
    if (near->end < *change) *change = near->end;
    if (around == NULL) around = near;
  }
  return around;
}

/* Functions of the addresses from `low` to before `high`, which lie `shift` above the file's
 * offsets; the first table that knows one. */
static bool put_range(struct found *found, struct symbols *const *tables,
                      const char *const *strings, uint32_t count, uint64_t low, uint64_t high,
                      uint64_t shift) {
  if (count == 0) return put_function(found, low - shift, "", 0);
  struct neighbours *neighbours = &found->neighbours[count - 1];
  neighbours->window.strings = strings[0];
  if (!find_near(neighbours, tables[0], low, high)) return false;
  uint32_t after = 0;
  for (uint64_t at = low, change; at < high; at = change) {
    change = high;
    const struct near *near = near_at(neighbours, at, &after, &change);
    bool is_put =
        near != NULL ? put_function(found, at - shift, neighbours->names + near->name, near->length)
                     : put_range(found, tables + 1, strings + 1, count - 1, at, change, shift);
    if (!is_put) return false;
  }
  return true;
}

static bool find_functions(struct found *found, struct symbols *const *tables,
                           const char *const *strings, uint32_t count, const struct range *ranges,
                           uint32_t range_count, uint64_t block) {
  if (count > MOST_TABLES || block > UINT64_MAX >> (BLOCK_BITS + 1)) return false;
  uint64_t low = block << BLOCK_BITS, high = low + (1u << BLOCK_BITS);
  found->low = low;
  found->count = 0;
  found->names_length = 0;
  for (uint64_t at = low, edge; at < high; at = edge) {
    const struct range *around = NULL;
    edge = high;
    for (uint32_t i = 0; i < range_count; i++) {
      uint64_t start = ranges[i].offset,
               end = start > UINT64_MAX - ranges[i].size ? UINT64_MAX : start + ranges[i].size;
      if (start > at && start < edge) edge = start;
      if (end > at && end < edge) edge = end;
      if (around == NULL && at >= start && at < end) around = &ranges[i];
    }
    uint64_t shift = around != NULL ? around->address - around->offset : 0;
    bool is_put = around != NULL && at + shift < edge + shift
                      ? put_range(found, tables, strings, count, at + shift, edge + shift, shift)
                      : put_function(found, at, "", 0);
    if (!is_put) return false;
  }
  return true;
}

static void found_free(struct found *found) {
  if (found == NULL) return;
  for (uint32_t i = 0; i < MOST_TABLES; i++) {
    free(found->neighbours[i].near);
    free(found->neighbours[i].names);
  }
  free(found->names);
  free(found);
}

static struct found *found_new(int file) {
  struct found *found = malloc(sizeof *found); /* most of it is room that a block fills first */
  if (found == NULL) return NULL;
  found->names = NULL;
  found->names_capacity = 0;
  for (uint32_t i = 0; i < MOST_TABLES; i++) {
    struct neighbours *near = &found->neighbours[i];
    near->near = NULL;
    near->names = NULL;
    near->count = near->capacity = 0;
    near->names_capacity = 0;
    near->window.table = NULL;
    near->window.strings = NULL;
    near->window.from = near->window.length = 0;
    near->window.file = file;
  }
  return found;
}

struct block_view {
  uint64_t names_bytes;
  uint32_t count, capacity;
  uint16_t *starts;
  uint32_t *ends;
  char *names;
};

/* One block, into the caller's room of `capacity` functions and `names_bytes`; the counts become
 * what it needs. `strings` are the string tables; of one that is NULL names are read from the file.
 * -1: no memory. */
PUBLIC int profile_symbols_block(struct symbols *const *tables, const char *const *strings,
                                 uint32_t count, const struct range *ranges, uint32_t range_count,
                                 uint64_t block, int32_t file, struct block_view *view) {
  struct found *found = found_new(file);
  if (found == NULL || !find_functions(found, tables, strings, count, ranges, range_count, block)) {
    found_free(found);
    return -1;
  }
  bool has_room = found->count <= view->capacity && found->names_length <= view->names_bytes;
  if (has_room) {
    memcpy(view->starts, found->starts, found->count * sizeof *found->starts);
    memcpy(view->ends, found->ends, found->count * sizeof *found->ends);
    if (found->names_length != 0) memcpy(view->names, found->names, found->names_length);
  }
  view->count = found->count;
  view->names_bytes = found->names_length;
  found_free(found);
  return has_room ? 0 : 1;
}

/* The blocks of a module that are asked for. */
PUBLIC void profile_learn_symbols(profile *p, uint32_t module, const uint64_t *blocks,
                                  uint32_t block_count, struct symbols *const *tables,
                                  const char *const *strings, uint32_t count,
                                  const struct range *ranges, uint32_t range_count, int32_t file) {
  struct found *found = found_new(file);
  if (found == NULL) return;
  for (uint32_t i = 0; i < block_count; i++) {
    bool is_found = find_functions(found, tables, strings, count, ranges, range_count, blocks[i]);
    profile_learn_block(p, module, blocks[i], is_found ? found->count : 0, found->starts,
                        found->ends, found->names, found->names_length);
  }
  found_free(found);
}
