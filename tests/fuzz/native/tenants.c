/* One tenant does not change another's rows: the same records with and without those of a hostile
 * one give the same rows for the rest.
 *
 * The victims stay within their share: few files, few functions. The hostile tenant may do what a
 * process can do: any mappings, any addresses behind the user's mark of a chain, any names. What is
 * asked is answered by what it says, never by when it was asked.
 */
#include "fuzz.h"

#define VICTIMS 4
#define FIRST_HOSTILE 1000
#define TYPE (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_CALLCHAIN)

struct victims {
  uint64_t rows, digest;
};

static uint64_t digest(uint64_t before, const void *bytes, size_t length) {
  const uint8_t *at = bytes;
  for (size_t i = 0; i < length; i++) before = (before ^ at[i]) * 0x100000001B3ull;
  return before;
}

static bool is_victim(int32_t pid) { return pid >= 1 && pid <= VICTIMS; }

/* ---- answers that depend on nothing but the question ----------------------------------------- */

static void answer_block(profile *p, uint32_t module, uint64_t block) {
  struct module_view view;
  char names[64];
  MUST(profile_module(p, module, &view) == 0);
  uint32_t hash = (uint32_t)digest(block, view.path, view.path_length);
  int length = snprintf(names, sizeof names, "f%08xg%08x", hash, hash);
  uint16_t starts[3] = {0, 0x1000, 0x2000};
  uint32_t ends[3] = {9, (uint32_t)length, (uint32_t)length}; /* what comes last has no name */
  profile_learn_block(p, module, block, 3, starts, ends, names, (uint64_t)length);
}

static void answer_mappings(profile *p, int32_t pid) {
  struct module key = {.inode = 7};
  profile_begin_mappings(p, pid);
  profile_map(p, pid, 0x400000, 0x408000, 0, &key, "/bin/victim", 11);
  profile_map(p, pid, 0x500000, 0x510000, 0, &key, "/lib/libc.so.6", 14);
  profile_map(p, pid, 0x600000, 0x601000, 0, &key, "//anon", 6);
  profile_end_mappings(p, pid, 0);
}

static void answer_all(profile *p) {
  uint32_t count = p->question_count;
  struct question *questions = malloc((count + 1) * sizeof *questions);
  MUST(questions != NULL);
  if (count != 0) memcpy(questions, p->questions, count * sizeof *questions);
  for (uint32_t i = 0; i < count; i++) {
    const struct question *question = &questions[i];
    char name[16];
    switch (question->kind) {
      case ASK_NAME:
        profile_set_name(p, question->tid, name,
                         (size_t)snprintf(name, sizeof name, "task%d", question->tid));
        break;
      /* Of one hostile process in four the cgroup is never known. */
      case ASK_CGROUP:
        profile_set_cgroup(p, question->pid,
                           is_victim(question->pid) ? question->pid % 2
                           : question->pid % 4      ? 2
                                                    : -1);
        break;
      case ASK_MAPPINGS: answer_mappings(p, question->pid); break;
      case ASK_BLOCK: answer_block(p, question->module, question->where); break;
      case ASK_PLACE:
        profile_learn_place(p, question->module, question->where, name,
                            (size_t)snprintf(name, sizeof name, "j%x", (unsigned)question->where));
        break;
    }
  }
  free(questions);
}

/* ---- a turn, and what the victims see of it -------------------------------------------------- */

static void add_row(const profile *p, uint32_t row, struct victims *seen) {
  const struct rows *rows = &p->rows;
  uint64_t value = seen->digest;
  value = digest(value, &rows->time[row], 8);
  value = digest(value, &rows->cpu[row], 2);
  value = digest(value, &rows->tid[row], 4);
  value = digest(value, p->names + (size_t)rows->name[row] * NAME_BYTES, NAME_BYTES);
  value = digest(value, &p->cgroups[rows->cgroup[row]], 4);
  for (int32_t node = rows->stack[row]; node >= 0; node = p->parents[node]) {
    struct frame_view named;
    uint64_t text_length;
    struct module_view module;
    MUST(profile_frames(p, (uint32_t)p->node_frames[node], 1, &named) == 1 &&
         profile_module(p, named.module, &module) == 0);
    MUST(named.kind != FUNCTION_BOUNDED);
    value = digest(digest(value, profile_text(p, &text_length) + named.name, named.name_length),
                   module.path, module.path_length);
    value = digest(digest(value, &named.offset, 8), &named.kind, 4);
  }
  seen->digest = value;
  seen->rows++;
}

static void turn(profile *p, struct victims *seen) {
  profile_replay(p, UINT64_MAX, 0);
  for (int round = 0; round < 5 && p->question_count != 0; round++) {
    answer_all(p);
    profile_resume(p, 0);
  }
  profile_finish(p);
  check_rows(p);
  check(p);
  for (uint32_t row = 0; row < p->rows.count; row++)
    if (is_victim(p->rows.pid[row])) add_row(p, row, seen);
}

/* ---- records --------------------------------------------------------------------------------- */

static void put_hostile(struct record *record, struct input *input, int32_t pid, uint64_t time) {
  uint8_t choice = byte(input);
  char path[64];
  if (choice < 90) {
    start_record(record, RECORD_MMAP2, 0);
    put_pair(record, pid, pid);
    put_word(record, some_address(input));
    put_word(record, choice < 80 ? 1 + number(input, 2) : wild(input));
    put_word(record, number(input, 1) << 12);
    put_pair(record, 0, 0);
    put_word(record, byte(input) < 128 ? 7 : number(input, 2));
    put_word(record, 0);
    put_word(record, 0);
    int length = snprintf(path, sizeof path,
                          choice < 60   ? "/h/%x"
                          : choice < 70 ? "//anon"
                                        : "/lib/libc.so.6",
                          (unsigned)number(input, 2));
    put_text(record, path, (size_t)length);
  } else if (choice < 200) {
    start_record(record, RECORD_FORK, 0);
    put_pair(record, FIRST_HOSTILE + (int32_t)below(input, 200), pid);
    memcpy(record->bytes + 16, record->bytes + 8, 8); /* a process: its thread has its number */
    record->size += 8;
    put_word(record, time);
  } else {
    start_record(record, choice < 230 ? RECORD_COMM : RECORD_EXIT,
                 choice < 215 ? MISC_COMM_EXEC : 0);
    put_pair(record, pid, choice < 230 ? pid : 1);
    if (choice < 230) put_text(record, "hostile", 7);
    else put_pair(record, pid, 1), put_word(record, time);
  }
  put_trailer(record, TYPE, pid, pid, time, 0, 0);
  end_record(record);
}

static void put_sample(struct record *record, struct input *input, int32_t pid, uint64_t time) {
  uint32_t which = below(input, 8), length = is_victim(pid) ? 1 + which % 4 : 1 + below(input, 60);
  /* One input stands for many addresses, so that a share is soon used up. */
  uint64_t made_up = number(input, 2);
  start_record(record, RECORD_SAMPLE, 2);
  put_word(record, 0x400000);
  put_pair(record, pid, pid);
  put_word(record, time);
  put_word(record, time % 4);
  put_word(record, 3 + length);
  put_word(record, CONTEXT_KERNEL);
  put_word(record, 0xffffffff81000000ull + below(input, 16) * 0x1000);
  put_word(record, CONTEXT_USER);
  for (uint32_t i = 0; i < length; i++) {
    made_up = made_up * 6364136223846793005ull + 1442695040888963407ull;
    if (is_victim(pid))
      put_word(record, (i % 2 ? 0x400010 : 0x500010) + (which * 3 + i) % 8 * 0x1000);
    else if (which == 0) put_word(record, wild(input));
    else put_word(record, (which % 2 ? 0x400000 : 0x500000) + (made_up >> 40) % 0x10000);
  }
  end_record(record);
}

void run_tenants(struct input *input) {
  struct limits limits = {.limit_bytes = 64 << 20,
                          .tenant_limit_bytes = 4 << 10,
                          .tenant_nodes = 700,
                          .tenant_unnamed = 20,
                          .most_nodes = 1 << 20,
                          .asks = 1,
                          .has_time = 1,
                          .has_trailer = 1};
  struct event event = {.sample_type = TYPE, .ip_register = 64};
  profile *with = profile_new(&limits, "idle", 5), *without = profile_new(&limits, "idle", 5);
  struct victims seen = {0}, expected = {0};
  MUST(with != NULL && without != NULL);
  MUST(profile_add_event(with, &event) == 0 && profile_add_event(without, &event) == 0);
  for (uint64_t time = 1; input->at < input->end; time++) {
    struct record record;
    uint8_t choice = byte(input);
    bool is_hostile = choice < 200;
    int32_t pid = is_hostile ? FIRST_HOSTILE + choice % 8 : 1 + choice % VICTIMS;
    if (is_hostile && choice < 100) put_hostile(&record, input, pid, time);
    else put_sample(&record, input, pid, time);
    profile_feed(with, record.bytes, record.size, -1);
    if (!is_hostile) profile_feed(without, record.bytes, record.size, -1);
    if (choice % 16 == 15) {
      turn(with, &seen);
      turn(without, &expected);
      MUST(seen.rows == expected.rows && seen.digest == expected.digest);
      if (choice == 255 || choice == 31)
        profile_start_segment(with, 50), profile_start_segment(without, 50);
    }
  }
  turn(with, &seen);
  turn(without, &expected);
  MUST(seen.rows == expected.rows && seen.digest == expected.digest);
  profile_free(with);
  profile_free(without);
}
