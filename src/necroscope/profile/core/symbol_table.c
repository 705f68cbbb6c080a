/* A symbol table of an ELF file as it is kept: what may be a function, in the order of addresses.
 */
#include "profile.h"
#include "symbols.h"

#include <stdlib.h>
#include <string.h>

#define SYMBOL_BYTES 24
/* Of one address: each is looked at for each block around it, and a file may hold millions. */
#define MOST_NAMES 64
#define DIGIT_BITS 11
#define DIGIT_MASK ((1u << DIGIT_BITS) - 1)

/* By address; of one address in the order of the file, which qsort does not promise. Digit by
 * digit, from the lowest: addresses of a file lie so near to each other that three digits are
 * enough. False: no memory. */
static bool sort_symbols(struct symbol *symbols, uint32_t count) {
  struct symbol *from = symbols, *into = malloc((count + 1ull) * sizeof *into), *spare = into;
  uint64_t lowest = UINT64_MAX, highest = 0;
  if (into == NULL) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (symbols[i].start < lowest) lowest = symbols[i].start;
    if (symbols[i].start > highest) highest = symbols[i].start;
  }
  for (uint32_t shift = 0; shift < 64 && count != 0 && (highest - lowest) >> shift != 0;
       shift += DIGIT_BITS) {
    uint32_t ends[1u << DIGIT_BITS] = {0}, before = 0;
    for (uint32_t i = 0; i < count; i++) ends[(from[i].start - lowest) >> shift & DIGIT_MASK]++;
    for (uint32_t i = 0; i <= DIGIT_MASK; i++) {
      uint32_t here = ends[i];
      ends[i] = before;
      before += here;
    }
    for (uint32_t i = 0; i < count; i++)
      into[ends[(from[i].start - lowest) >> shift & DIGIT_MASK]++] = from[i];
    struct symbol *sorted = into;
    into = from;
    from = sorted;
  }
  if (from != symbols) memcpy(symbols, from, (size_t)count * sizeof *symbols);
  free(spare);
  return true;
}

static void keep_some_names(struct symbols *table) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < table->count; i++) {
    if (kept >= MOST_NAMES && table->symbols[kept - MOST_NAMES].start == table->symbols[i].start)
      continue;
    table->symbols[kept++] = table->symbols[i];
  }
  table->count = kept;
}

PUBLIC void profile_symbols_free(struct symbols *table) {
  if (table == NULL) return;
  free(table->symbols);
  free(table->sections);
  free(table);
}

PUBLIC struct symbols *profile_symbols_new(const uint8_t *bytes, uint64_t length,
                                           const struct section *sections, uint32_t section_count,
                                           uint64_t strings_at, uint64_t strings_bytes) {
  uint64_t all = length / SYMBOL_BYTES;
  struct symbols *table = calloc(1, sizeof *table);
  if (table == NULL || all > UINT32_MAX) goto failed;
  table->symbols = malloc((all + 1) * sizeof *table->symbols);
  table->sections = malloc((section_count + 1ull) * sizeof *sections);
  if (table->symbols == NULL || table->sections == NULL) goto failed;
  memcpy(table->sections, sections, section_count * sizeof *sections);
  table->strings_at = strings_at;
  table->strings_bytes = strings_bytes;
  table->section_count = section_count;
  bool is_sorted = true;
  for (uint64_t i = 0; i < all; i++, bytes += SYMBOL_BYTES) {
    struct symbol *symbol = &table->symbols[table->count];
    memcpy(&symbol->name, bytes, 4);
    symbol->info = bytes[4];
    memcpy(&symbol->section, bytes + 6, 2);
    memcpy(&symbol->start, bytes + 8, 8);
    memcpy(&symbol->size, bytes + 16, 8);
    uint32_t type = symbol->info & 15u;
    if (symbol->section == 0 || symbol->start == 0 ||
        (type != TYPE_NONE && type != TYPE_FUNCTION && type != TYPE_INDIRECT))
      continue;
    is_sorted &= table->count == 0 || symbol->start >= symbol[-1].start;
    table->count++;
  }
  if (!is_sorted && !sort_symbols(table->symbols, table->count)) goto failed;
  keep_some_names(table);
  struct symbol *smaller = realloc(table->symbols, (table->count + 1) * sizeof *smaller);
  if (smaller != NULL) table->symbols = smaller;
  return table;
failed:
  profile_symbols_free(table);
  return NULL;
}

PUBLIC uint64_t profile_symbols_bytes(const struct symbols *table) {
  return table->count * sizeof *table->symbols;
}
