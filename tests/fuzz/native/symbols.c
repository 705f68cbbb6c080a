/* Symbol tables of files that anybody may have written, and the kernel's list: whatever they say, a
 * block of functions is a valid one. */
#define _GNU_SOURCE /* memfd_create */
#include "fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_SYMBOLS 400
#define MOST_TABLES 5 /* one more than there may be */
#define STRINGS_BYTES 3000
#define BLOCK_BYTES (1u << BLOCK_BITS)

/* As symbols.c and symbols/function_index.py have them. */
struct section {
  uint64_t end;
  uint32_t has_code, reserved;
};

struct range {
  uint64_t offset, size, address;
};

struct block_view {
  uint64_t names_bytes;
  uint32_t count, capacity;
  uint16_t *starts;
  uint32_t *ends;
  char *names;
};

struct symbols *profile_symbols_new(const uint8_t *bytes, uint64_t length,
                                    const struct section *sections, uint32_t section_count,
                                    uint64_t strings_at, uint64_t strings_bytes);
void profile_symbols_free(struct symbols *table);
uint64_t profile_symbols_bytes(const struct symbols *table);
int profile_symbols_block(struct symbols *const *tables, const char *const *strings, uint32_t count,
                          const struct range *ranges, uint32_t range_count, uint64_t block,
                          int32_t file, struct block_view *view);
void profile_learn_symbols(profile *p, uint32_t module, const uint64_t *blocks,
                           uint32_t block_count, struct symbols *const *tables,
                           const char *const *strings, uint32_t count, const struct range *ranges,
                           uint32_t range_count, int32_t file);
struct kallsyms *kallsyms_new(void);
void kallsyms_free(struct kallsyms *k);
int kallsyms_read(struct kallsyms *k, int32_t file);
int64_t kallsyms_finish(struct kallsyms *k);
uint32_t kallsyms_block(const struct kallsyms *k, uint64_t low, uint16_t *starts,
                        uint32_t *name_ends, char *names, uint32_t capacity);
uint64_t kallsyms_find(const struct kallsyms *k, const char *name, uint32_t *place, uint64_t *end,
                       uint32_t *is_shown);

/* What profile_learn_block takes. */
static void check_block(const uint16_t *starts, const uint32_t *ends, uint32_t count,
                        uint64_t names_bytes) {
  MUST(count >= 1 && count <= BLOCK_BYTES && starts[0] == 0 && ends[count - 1] <= names_bytes);
  for (uint32_t i = 1; i < count; i++)
    MUST(starts[i] > starts[i - 1] && ends[i] >= ends[i - 1] && starts[i] < BLOCK_BYTES);
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *string_table(void) {
  static char strings[STRINGS_BYTES];
  for (size_t i = 0; i < sizeof strings; i++)
    strings[i] = "_main\0run@@V1\0$x\0__helper\0a\0"[i % 29];
  memset(strings + 200, 'n', 1500); /* longer than any name may be */
  return strings;
}

static struct symbols *make_table(struct input *input, bool is_in_file) {
  static uint8_t bytes[MOST_SYMBOLS * 24];
  struct section sections[4];
  uint32_t count = number(input, 1), section_count = below(input, 5);
  for (uint32_t i = 0; i < section_count; i++)
    sections[i] = (struct section){byte(input) < 200 ? 0x9000 : wild(input), below(input, 2), 0};
  for (uint32_t i = 0; i < count; i++) {
    uint8_t *symbol = bytes + 24 * i, choice = byte(input);
    uint32_t name = choice < 240 ? below(input, 200) : (uint32_t)wild(input);
    uint16_t section = (uint16_t)below(input, 6);
    uint64_t start = choice < 200 ? 0x1000 + number(input, 2) % 0x9000 : wild(input),
             size = choice % 4 ? number(input, 1) : wild(input);
    memcpy(symbol, &name, 4);
    symbol[4] = (uint8_t)((choice % 3 == 0 ? 0 : choice % 3 == 1 ? 2 : 10) | (choice & 0x10));
    symbol[5] = 0;
    memcpy(symbol + 6, &section, 2);
    memcpy(symbol + 8, &start, 8);
    memcpy(symbol + 16, &size, 8);
  }
  uint64_t strings_bytes = byte(input) < 200 ? STRINGS_BYTES
                           : is_in_file      ? wild(input)
                                             : number(input, 1);
  uint64_t strings_at = byte(input) < 230 ? 0 : wild(input);
  return profile_symbols_new(bytes, count * 24ull, sections, section_count, strings_at,
                             strings_bytes);
}

/* All blocks that were asked for are answered; the rows have their names. */
static void learn(struct input *input, struct symbols *const *tables, const char *const *strings,
                  uint32_t count, const struct range *ranges, uint32_t range_count, int file) {
  struct limits limits = {.limit_bytes = 1 << 20,
                          .tenant_limit_bytes = 1u << (10 + below(input, 8)),
                          .tenant_nodes = 100,
                          .tenant_unnamed = 10,
                          .most_nodes = 1000};
  profile *p = profile_new(&limits, "idle", 5);
  struct event event = {.sample_type = SAMPLE_IP | SAMPLE_TID, .ip_register = 64};
  struct module key = {.inode = 1};
  if (p == NULL || profile_add_event(p, &event) != 0) {
    profile_free(p);
    return;
  }
  for (uint32_t i = 0; i < 4; i++) {
    struct record record;
    start_record(&record, RECORD_SAMPLE, 2);
    put_word(&record, 0x1000 + number(input, 2));
    put_pair(&record, 7, 7);
    end_record(&record);
    if (i == 1) {
      profile_replay(p, UINT64_MAX, 0);
      profile_map(p, 7, 0x1000, 0x20000, byte(input) > 200 ? wild(input) : 0, &key, "/bin/x", 6);
      profile_finish(p);
    }
    profile_feed(p, record.bytes, record.size, 0);
  }
  profile_replay(p, UINT64_MAX, 0);
  for (uint32_t i = 0; i < p->module_count; i++) {
    uint64_t blocks[16];
    uint32_t block_count = 0;
    for (uint32_t at = 0; at < p->block_count && block_count < 16; at++)
      if (p->blocks[at]->module == i) blocks[block_count++] = p->blocks[at]->number;
    profile_learn_symbols(p, i, blocks, block_count, tables, strings, count, ranges, range_count,
                          file);
  }
  for (uint32_t i = 0; i < p->block_count; i++) MUST(p->blocks[i]->is_known);
  profile_resume(p, 0);
  profile_finish(p);
  check_rows(p);
  check(p);
  profile_free(p);
}

void run_symbols(struct input *input) {
  static uint16_t starts[BLOCK_BYTES];
  static uint32_t ends[BLOCK_BYTES];
  static int file = -1;
  struct symbols *tables[MOST_TABLES];
  const char *strings[MOST_TABLES];
  struct range ranges[4];
  uint32_t count = 0, wanted = below(input, MOST_TABLES + 1), range_count = below(input, 5);
  if (file < 0) {
    file = memfd_create("strings", 0);
    MUST(file >= 0 && write(file, string_table(), STRINGS_BYTES) == STRINGS_BYTES);
  }
  if (byte(input) > 230) allocations_left = below(input, 20);
  bool is_in_file = byte(input) < 128;
  for (uint32_t i = 0; i < wanted; i++) {
    struct symbols *table = make_table(input, is_in_file);
    if (table == NULL) continue;
    profile_symbols_bytes(table);
    strings[count] = is_in_file ? NULL : string_table();
    tables[count++] = table;
  }
  for (uint32_t i = 0; i < range_count; i++) {
    bool is_wild = byte(input) > 220;
    ranges[i] = (struct range){is_wild ? wild(input) : number(input, 2),
                               is_wild ? wild(input) : number(input, 2),
                               is_wild ? wild(input) : number(input, 2)};
  }
  for (uint32_t i = 0; i < 4; i++) {
    uint64_t block = i < 3 ? i : wild(input);
    struct block_view view = {0, 0, 0, starts, ends, NULL};
    int answer =
        profile_symbols_block(tables, strings, count, ranges, range_count, block, file, &view);
    /* It has at least one function, for which there was no room; or no memory. */
    if (answer != 1) continue;
    char *names = malloc(view.names_bytes + 1);
    MUST(names != NULL);
    view = (struct block_view){view.names_bytes, 0, BLOCK_BYTES, starts, ends, names};
    if (profile_symbols_block(tables, strings, count, ranges, range_count, block, file, &view) == 0)
      check_block(starts, ends, view.count, view.names_bytes);
    free(names);
  }
  if (count < MOST_TABLES)
    learn(input, tables, strings, count, ranges, range_count, byte(input) < 240 ? file : -1);
  for (uint32_t i = 0; i < count; i++) profile_symbols_free(tables[i]);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

void run_kallsyms(struct input *input) {
  static uint16_t starts[BLOCK_BYTES];
  static uint32_t ends[BLOCK_BYTES];
  static char text[1 << 16];
  char names[60];
  size_t length = 0;
  while (input->at < input->end && length < sizeof text - 400) {
    uint8_t choice = byte(input);
    uint64_t near = 0xffffffff81000000ull + number(input, 2) * (choice & 1 ? 1 : 0x1000);
    if (choice > 240) text[length++] = (char)byte(input);
    if (choice > 240) continue;
    unsigned long long address = choice < 200 ? near : wild(input);
    length += (size_t)snprintf(text + length, 300, "%016llx %c %.*s%s\n", address,
                               "tTwWdDbr"[choice % 8], (int)below(input, 12), "__pfx__stext_",
                               choice % 16 == 7 ? "\t[nf_nat]" : "");
  }
  struct kallsyms *kernel = kallsyms_new();
  MUST(kernel != NULL);
  int ends_of_pipe[2];
  /* Each write is a read of its own, as the kernel hands out kallsyms. */
  MUST(pipe2(ends_of_pipe, O_DIRECT) == 0);
  MUST(fcntl(ends_of_pipe[1], F_SETPIPE_SZ, 2 * sizeof text) > 0);
  for (size_t at = 0, size = length / 2 + 1; at < length; at += size) {
    size_t left = length - at < size ? length - at : size;
    MUST(write(ends_of_pipe[1], text + at, left) == (ssize_t)left);
  }
  close(ends_of_pipe[1]);
  MUST(kallsyms_read(kernel, ends_of_pipe[0]) == 0);
  close(ends_of_pipe[0]);
  if (kallsyms_finish(kernel) >= 0) {
    static const uint64_t lows[] = {0, 0xffffffff81000000ull, 0xffffffff81004000ull,
                                    0xffffffff81100000ull, 0xffffffffffffc000ull};
    for (size_t i = 0; i < sizeof lows / sizeof *lows; i++) {
      uint32_t count = kallsyms_block(kernel, lows[i], starts, ends, names, sizeof names);
      check_block(starts, ends, count, sizeof names);
    }
    uint32_t place = 0, is_shown, found = 0;
    for (uint64_t end, start;
         (start = kallsyms_find(kernel, "_stext", &place, &end, &is_shown)) != 0; found++)
      MUST(found < length);
  }
  kallsyms_free(kernel);
}
