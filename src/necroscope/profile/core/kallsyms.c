/* The kernel's own list of its symbols, /proc/kallsyms (kernel/kallsyms.c): `ADDRESS TYPE
 * NAME[\t[MODULE]]`, a line each.
 *
 *   symbols   address     name         a symbol of data has no name here: it ends the function
 * before it
 *             ...81000    _stext
 *             ...81040    -
 *
 * Of several symbols at one address the first is shown: a global one without underscores rather
 * than a weak or local one. */
#include "profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_NAME UINT32_MAX
#define DIGITS 16 /* of an address, on a 64-bit kernel */
#define TYPE_AT 17
#define NAME_AT 19
#define MOST_BYTES (64u << 20) /* of the text */
/* The last symbol of an area has no end; no function is longer than this. */
#define FUNCTION_LIMIT (1ull << 20)

struct symbol {
  uint64_t address;
  uint32_t name; /* in `names`, ended by a zero */
  uint8_t rank;
};

struct kallsyms {
  struct symbol *symbols;
  uint32_t count, capacity, functions;
  char *names;
  uint32_t names_length, names_capacity;
};

static bool room(void **array, uint32_t *capacity, uint32_t wanted, size_t item_bytes) {
  if (wanted <= *capacity) return true;
  uint32_t bigger = *capacity < 4096 ? 4096 : *capacity;
  while (bigger < wanted) bigger += bigger / 2;
  void *made = bigger > 2 * MOST_BYTES ? NULL : realloc(*array, bigger * item_bytes);
  if (made == NULL) return false;
  *array = made;
  *capacity = bigger;
  return true;
}

static int digit(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  character |= 0x20;
  return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

static bool starts_with(const char *text, size_t length, const char *prefix) {
  return length >= strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0;
}

/* False: there is no room. A line of another form is passed over. */
static bool add_line(struct kallsyms *k, const char *line, size_t length) {
  uint64_t address = 0;
  if (length <= NAME_AT || line[DIGITS] != ' ' || line[NAME_AT - 1] != ' ') return true;
  for (int i = 0; i < DIGITS; i++) {
    if (digit(line[i]) < 0) return true;
    address = address << 4 | (uint64_t)digit(line[i]);
  }
  const char *name = line + NAME_AT;
  size_t name_length = length - NAME_AT;
  char type = line[TYPE_AT];
  /* Padding in front of each function (CONFIG_CALL_PADDING), in which nothing runs. */
  if (starts_with(name, name_length, "__pfx_")) return true;
  /* aarch64 mapping symbols ($x, $d) and local labels (.L) are no functions. */
  bool is_function =
      strchr("tTwW", type) != NULL && name[0] != '$' && !starts_with(name, name_length, ".L");
  if (!room((void **)&k->symbols, &k->capacity, k->count + 1, sizeof *k->symbols)) return false;
  struct symbol symbol = {address, NO_NAME, UINT8_MAX};
  if (is_function) {
    if (!room((void **)&k->names, &k->names_capacity, k->names_length + (uint32_t)name_length + 1,
              1))
      return false;
    symbol.rank =
        (uint8_t)(4 * (type == 'w' || type == 'W') + 2 * (name[0] == '_') + (type == 't'));
    symbol.name = k->names_length;
    memcpy(k->names + k->names_length, name, name_length);
    k->names_length += (uint32_t)name_length;
    k->names[k->names_length++] = 0;
  }
  k->symbols[k->count++] = symbol;
  return true;
}

PUBLIC struct kallsyms *kallsyms_new(void) { return calloc(1, sizeof(struct kallsyms)); }

PUBLIC void kallsyms_free(struct kallsyms *k) {
  if (k == NULL) return;
  free(k->symbols);
  free(k->names);
  free(k);
}

/* Whole lines; what follows the last newline is left. Returns how many bytes were taken, -1 if
 * there is no room. */
static int64_t add_lines(struct kallsyms *k, const char *text, uint64_t length) {
  const char *at = text, *end = text + length, *newline;
  while (at < end && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
    if (!add_line(k, at, (size_t)(newline - at))) return -1;
    at = newline + 1;
  }
  return at - text;
}

/* All of a file, here and not in Python: the kernel hands out less than a page per read, whatever
 * is asked for. A line that fits into no page is none. Returns 0, or the error's number. */
PUBLIC int kallsyms_read(struct kallsyms *k, int32_t file) {
  char text[1u << 16];
  size_t held = 0;
  for (uint64_t all = 0; all < MOST_BYTES;) {
    if (held == sizeof text) held = 0;
    ssize_t got = read(file, text + held, sizeof text - held);
    if (got < 0 && errno != EINTR) return errno;
    if (got == 0) return 0;
    if (got < 0) continue;
    all += (uint64_t)got;
    held += (size_t)got;
    int64_t taken = add_lines(k, text, held);
    if (taken < 0) return ENOMEM;
    held -= (size_t)taken;
    memmove(text, text + taken, held);
  }
  return 0;
}

static int compare(const void *one, const void *other) {
  const struct symbol *a = one, *b = other;
  if (a->address != b->address) return a->address < b->address ? -1 : 1;
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  return a->name < b->name ? -1 : a->name > b->name;
}

/* After the last line: how many functions there are; -1 if the kernel shows no address. */
PUBLIC int64_t kallsyms_finish(struct kallsyms *k) {
  uint32_t kept = 0;
  if (k->count != 0) qsort(k->symbols, k->count, sizeof *k->symbols, compare);
  if (k->count != 0 && k->symbols[k->count - 1].address == 0) return -1;
  for (uint32_t i = 0; i < k->count; i++) {
    bool is_same_place = kept != 0 && k->symbols[i].address == k->symbols[kept - 1].address;
    bool is_more_data =
        kept != 0 && k->symbols[i].name == NO_NAME && k->symbols[kept - 1].name == NO_NAME;
    if (is_more_data || (is_same_place && k->symbols[i].name == NO_NAME)) continue;
    k->functions += k->symbols[i].name != NO_NAME;
    k->symbols[kept++] = k->symbols[i];
  }
  k->count = kept;
  struct symbol *fitting = realloc(k->symbols, (kept + 1) * sizeof *fitting);
  if (fitting != NULL) k->symbols = fitting;
  return k->functions;
}

/* The first symbol behind an address. */
static uint32_t first_behind(const struct kallsyms *k, uint64_t address) {
  uint32_t low = 0, high = k->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (k->symbols[middle].address <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The functions from `low` to before `low + 2^BLOCK_BITS`, as profile_learn_block wants them. There
 * is room for one at each address in the block, and for `capacity` bytes of names: functions beyond
 * that have no name. Returns how many there are. */
PUBLIC uint32_t kallsyms_block(const struct kallsyms *k, uint64_t low, uint16_t *starts,
                               uint32_t *name_ends, char *names, uint32_t capacity) {
  uint64_t high = low + (1ull << BLOCK_BITS);
  uint32_t behind = first_behind(k, low), at = behind, count = 0, used = 0;
  starts[count] = 0;
  name_ends[count++] = 0;
  while (at > 0 && k->symbols[at - 1].address == k->symbols[behind - 1].address) at--;
  for (; at < k->count && (k->symbols[at].address < high || high < low); at++) {
    const struct symbol *symbol = &k->symbols[at];
    bool is_other_name = at > 0 && symbol->address == symbol[-1].address;
    if (is_other_name || (symbol->address < low && symbol->address + FUNCTION_LIMIT <= low))
      continue;
    uint64_t start = symbol->address > low ? symbol->address - low : 0;
    const char *name = symbol->name == NO_NAME ? "" : k->names + symbol->name;
    uint32_t length = (uint32_t)strlen(name);
    if (length > capacity - used) length = 0;
    if (start == 0) count = used = 0; /* in the place of nothing */
    starts[count] = (uint16_t)start;
    memcpy(names + used, name, length);
    used += length;
    name_ends[count++] = used;
    uint64_t limit = symbol->address + FUNCTION_LIMIT;
    if (symbol->address < low && limit < high &&
        (behind == k->count || k->symbols[behind].address > limit)) {
      starts[count] = (uint16_t)(limit - low);
      name_ends[count++] = used;
    }
  }
  return count;
}

/* Where functions of the kernel itself lie, by their name (which has no module behind it): the next
 * one from `place` on, which is moved behind it. `is_shown`: it is the one that is shown of the
 * symbols at its address. 0: there is none. */
PUBLIC uint64_t kallsyms_find(const struct kallsyms *k, const char *name, uint32_t *place,
                              uint64_t *end, uint32_t *is_shown) {
  for (uint32_t i = *place; i < k->count; i++) {
    const struct symbol *symbol = &k->symbols[i];
    if (symbol->name == NO_NAME || strcmp(k->names + symbol->name, name) != 0) continue;
    uint64_t limit = symbol->address + FUNCTION_LIMIT;
    uint32_t next = first_behind(k, symbol->address);
    *end = next < k->count && k->symbols[next].address < limit ? k->symbols[next].address : limit;
    *is_shown = i == 0 || symbol[-1].address != symbol->address;
    *place = i + 1;
    return symbol->address;
  }
  return 0;
}
