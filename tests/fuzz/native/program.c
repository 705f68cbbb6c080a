/* An input as a little program over all that Python may call: any records, any answers, in any
 * order, with little memory or none. */
#include "fuzz.h"

#define RING_PAGE_BYTES 4096

struct run {
  profile *p;
  struct input *input;
  uint64_t type; /* of the first event: how trailers look */
  bool is_open; /* rows wait to be finished, once */
  bool is_finished; /* nothing is half written: a segment may begin */
  bool is_obedient; /* every question gets an answer, so nothing may be left unasked */
};

/* ---- records --------------------------------------------------------------------------------- */

/* One read of the input per statement: compilers differ in which argument they take first, and an
 * input must mean the same to all. */
static void put_pids(struct record *record, struct input *input) {
  int32_t one = some_pid(input);
  put_pair(record, one, some_pid(input));
}

static void put_chain(struct record *record, struct input *input) {
  static const uint64_t marks[] = {CONTEXT_KERNEL,     CONTEXT_USER, CONTEXT_GUEST_KERNEL,
                                   CONTEXT_GUEST_USER, CONTEXT_HV,   CONTEXT_GUEST};
  uint32_t length = below(input, 24);
  put_word(record, byte(input) < 250 ? length : wild(input));
  for (uint32_t i = 0; i < length; i++) {
    uint8_t choice = byte(input);
    if (choice < 60) put_word(record, marks[choice % 6]);
    else if (choice < 120) put_word(record, 0xffffffff81000000ull + number(input, 2) * 64);
    else put_word(record, some_address(input));
  }
}

/* All that the layout of an event says, with counts that are mostly true. */
static void put_sample(struct record *record, struct run *run) {
  struct input *input = run->input;
  uint32_t events = run->p->event_count;
  uint64_t type = events == 0 ? wild(input) : run->p->events[below(input, events)].sample_type,
           id = byte(input);
  start_record(record, RECORD_SAMPLE, (uint16_t)(1 + below(input, 5)));
  if (type & SAMPLE_IDENTIFIER) put_word(record, id);
  if (type & SAMPLE_IP) put_word(record, some_address(input));
  if (type & SAMPLE_TID) put_pids(record, input);
  if (type & SAMPLE_TIME) put_word(record, wild(input));
  if (type & SAMPLE_ADDR) put_word(record, wild(input));
  if (type & SAMPLE_ID) put_word(record, id);
  if (type & SAMPLE_STREAM_ID) put_word(record, id);
  if (type & SAMPLE_CPU) put_word(record, byte(input));
  if (type & SAMPLE_PERIOD) put_word(record, 1);
  if (type & SAMPLE_READ)
    for (uint32_t i = below(input, 6); i > 0; i--) put_word(record, below(input, 4));
  if (type & SAMPLE_CALLCHAIN) put_chain(record, input);
  if (type & SAMPLE_RAW) put_word(record, wild(input));
  if (type & SAMPLE_BRANCH_STACK)
    for (uint32_t i = below(input, 6); i > 0; i--) put_word(record, below(input, 3));
  if (type & SAMPLE_REGS_USER)
    for (uint32_t i = below(input, 6); i > 0; i--) put_word(record, some_address(input));
  for (uint32_t i = below(input, 8); i > 0; i--) put_word(record, wild(input));
}

static void put_mapping(struct record *record, struct input *input, uint32_t kind) {
  static const char *const paths[] = {"/bin/a", "/lib/b.so", "/lib/c.so", "//anon",
                                      "[heap]", "[vdso]",    "/memfd:x",  ""};
  uint8_t misc = byte(input);
  start_record(record, kind, (uint16_t)((misc & 1) << 14 | (misc % 8 == 6 ? MISC_MMAP_DATA : 0)));
  put_pids(record, input);
  put_word(record, some_address(input));
  put_word(record, byte(input) < 240 ? number(input, 1) << 10 : wild(input));
  put_word(record, byte(input) < 200 ? number(input, 1) << 12 : wild(input));
  if (kind == RECORD_MMAP2) {
    put_pair(record, (int32_t)below(input, 32), 1);
    for (int i = 0; i < 3; i++) put_word(record, below(input, 4));
  }
  const char *path = paths[below(input, 8)];
  char made[64];
  if (byte(input) > 200) {
    snprintf(made, sizeof made, "/made/%x", (unsigned)number(input, 2));
    path = made;
  }
  put_text(record, path, strlen(path));
}

static void put_record(struct record *record, struct run *run) {
  static const uint32_t others[] = {RECORD_LOST,     RECORD_KSYMBOL,
                                    RECORD_CGROUP,   RECORD_LOST_SAMPLES,
                                    RECORD_THROTTLE, 70,
                                    FINISHED_ROUND,  81};
  struct input *input = run->input;
  uint8_t choice = byte(input);
  if (choice < 100) {
    put_sample(record, run);
    end_record(record);
    return;
  }
  if (choice < 150) {
    put_mapping(record, input, choice < 140 ? RECORD_MMAP2 : RECORD_MMAP);
  } else if (choice < 175) {
    start_record(record, RECORD_COMM, (uint16_t)(below(input, 2) << 13));
    put_pids(record, input);
    put_text(record, "a name too long for one", below(input, 20));
  } else if (choice < 230) {
    start_record(record, choice < 200 ? RECORD_FORK : RECORD_EXIT,
                 (uint16_t)(below(input, 2) << 13));
    put_pids(record, input);
    put_pids(record, input);
    put_word(record, 0);
  } else {
    start_record(record, others[choice % 8], 0);
    for (uint32_t i = below(input, 6); i > 0; i--) put_word(record, wild(input));
  }
  uint64_t time = wild(input);
  put_trailer(record, run->type, 1, 1, time, byte(input), 3);
  end_record(record);
}

/* A ring as the kernel leaves it: records that go on at its start, and sometimes a head that cannot
 * be. */
static void drain(struct run *run) {
  uint64_t size = 512ull << below(run->input, 5), tail = wild(run->input) & ~7ull, head = tail;
  uint8_t *base = malloc(RING_PAGE_BYTES + size), *data = base + RING_PAGE_BYTES;
  MUST(base != NULL);
  memset(base, 0xA5, RING_PAGE_BYTES + size);
  for (uint32_t i = below(run->input, 12); i > 0; i--) {
    struct record record;
    put_record(&record, run);
    if (head - tail + record.size > size) break;
    for (uint32_t at = 0; at < record.size; at++) data[(head + at) % size] = record.bytes[at];
    head += record.size;
  }
  if (byte(run->input) > 250) head = wild(run->input);
  memcpy(base + RING_HEAD_OFFSET, &head, 8);
  memcpy(base + RING_HEAD_OFFSET + 8, &tail, 8);
  struct ring ring = {base, size, RING_PAGE_BYTES, (int32_t)below(run->input, 4) - 1, 0};
  profile_drain(run->p, &ring, 1);
  memcpy(&tail, base + RING_HEAD_OFFSET + 8, 8);
  MUST(tail == head);
  free(base);
}

static void feed(struct run *run) {
  struct input *input = run->input;
  if (byte(input) > 250) {
    size_t length = (size_t)(input->end - input->at);
    length = length < 200 ? length : 200;
    uint64_t span[2] = {UINT64_MAX, 0};
    MUST(profile_scan(run->p, input->at, length, span) <= length &&
         profile_skip(input->at, length) <= length);
    MUST(profile_feed(run->p, input->at, length, -1) <= length);
    input->at += length;
    return;
  }
  for (uint32_t i = below(input, 16); i > 0; i--) {
    struct record record;
    put_record(&record, run);
    uint64_t given = byte(input) > 250 ? record.size / 2 & ~7u : record.size;
    MUST(profile_feed(run->p, record.bytes, given, (int32_t)below(input, 4) - 1) <= given);
  }
}

/* ---- answers --------------------------------------------------------------------------------- */

static void answer_block(struct run *run, uint32_t module, uint64_t block) {
  struct input *input = run->input;
  uint16_t starts[16];
  uint32_t ends[16], count = below(input, 16), end = 0, start = 0;
  for (uint32_t i = 0; i < count; i++) {
    bool is_wild = byte(input) > 250;
    starts[i] = (uint16_t)(is_wild ? wild(input) : start);
    start += 1 + number(input, 1) * 8;
    end += below(input, 8);
    ends[i] = byte(input) > 252 ? (uint32_t)wild(input) : end;
  }
  char *names = malloc(end + 1); /* just so long, so that a read behind it is found */
  MUST(names != NULL);
  for (size_t i = 0; i < end; i++) names[i] = (char)('a' + (i * 7 + module + block) % 26);
  if (byte(input) > 200 && end >= 12) memcpy(names, "default_idle", 12);
  profile_learn_block(run->p, module, block, count, starts, ends, names, end);
  free(names);
}

static void answer_mappings(struct run *run, int32_t pid) {
  static const char *const paths[] = {"/bin/a", "/lib/b.so", "//anon", "[heap]", "/lib/d.so"};
  struct input *input = run->input;
  profile_begin_mappings(run->p, pid);
  for (uint32_t i = below(input, 12); i > 0; i--) {
    const char *path = paths[below(input, 5)];
    struct module key = {.inode = below(input, 3)};
    uint64_t start = some_address(input),
             end = byte(input) > 250 ? wild(input) : start + (number(input, 1) << 8);
    profile_map(run->p, pid, start, end, number(input, 1) << 12, &key, path, strlen(path));
  }
  profile_end_mappings(run->p, pid, byte(input) > 250);
}

static void answer(struct run *run, const struct question *question) {
  struct input *input = run->input;
  switch (question->kind) {
    case ASK_NAME:
      profile_set_name(run->p, question->tid, "asked for its name", below(input, 18));
      break;
    case ASK_CGROUP:
      profile_set_cgroup(run->p, question->pid,
                         byte(input) < 240 ? (int32_t)below(input, 4) - 1 : (int32_t)wild(input));
      break;
    case ASK_MAPPINGS: answer_mappings(run, question->pid); break;
    case ASK_BLOCK: answer_block(run, question->module, question->where); break;
    case ASK_PLACE:
      profile_learn_place(run->p, question->module, question->where, "jitted", below(input, 7));
      break;
    default: MUST(!"a question of no kind");
  }
}

static void answer_all(struct run *run) {
  uint32_t count = run->p->question_count;
  struct question *questions = malloc((count + 1) * sizeof *questions);
  MUST(questions != NULL);
  if (count != 0) memcpy(questions, run->p->questions, count * sizeof *questions);
  for (uint32_t i = 0; i < count; i++)
    if (run->is_obedient || byte(run->input) < 250) answer(run, &questions[i]);
  free(questions);
}

static void replay(struct run *run, uint64_t until) {
  profile_replay(run->p, until, (int64_t)wild(run->input));
  run->is_open = true;
}

static void finish(struct run *run) {
  if (!run->is_open) return;
  profile_finish(run->p);
  run->is_open = false;
  check_rows(run->p);
  run->is_finished = true;
}

static void turn(struct run *run) {
  replay(run, byte(run->input) < 200 ? UINT64_MAX : wild(run->input));
  for (uint32_t round = below(run->input, 6); round > 0 && run->p->question_count != 0; round--) {
    answer_all(run);
    profile_resume(run->p, 0);
  }
  answer_all(run); /* what was asked for in the last round is answered in vain, but answered */
  finish(run);
  if (!run->is_obedient) return;
  /* Nothing waits for an answer to a question that nobody was asked. */
  for (uint32_t i = 0; i < run->p->block_count; i++) MUST(run->p->blocks[i]->is_known);
  for (uint32_t i = 0; i < run->p->place_count; i++) MUST(run->p->places[i].function != NONE);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void add_event(struct run *run) {
  static const uint64_t types[] = {
      SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_CALLCHAIN | SAMPLE_IDENTIFIER,
      SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_CALLCHAIN | SAMPLE_REGS_USER |
          SAMPLE_CGROUP,
      SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ID | SAMPLE_CALLCHAIN | SAMPLE_REGS_USER |
          SAMPLE_STACK_USER | SAMPLE_RAW,
      SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_READ | SAMPLE_BRANCH_STACK | SAMPLE_REGS_USER,
      SAMPLE_IP | SAMPLE_TID,
  };
  struct input *input = run->input;
  struct event event = {.sample_type = types[below(input, 5)],
                        .read_format = byte(input) & 31,
                        .ip_register = below(input, 70)};
  if (byte(input) > 200) event.sample_type ^= number(input, 4);
  event.branch_sample_type = byte(input) > 128 ? BRANCH_HW_INDEX | BRANCH_COUNTERS : 0;
  event.user_registers = wild(input);
  event.interrupt_registers = wild(input);
  event.is_passed_on = byte(input) > 240;
  int added = profile_add_event(run->p, &event);
  if (added == 0) run->type = event.sample_type;
  if (added >= 0) profile_add_id(run->p, byte(input), (uint32_t)added);
}

static void look(struct run *run) {
  struct view view;
  struct event_counts counts;
  int32_t cgroups[4];
  uint32_t bounded[4];
  profile_view(run->p, &view);
  MUST(view.used_bytes <= view.limit_bytes && view.node_count == run->p->node_count);
  MUST(profile_take_bounded(run->p, cgroups, bounded, 4) <= 4);
  MUST(profile_event_counts(run->p, run->p->event_count, &counts) == -1);
  profile_earliest(run->p);
  int64_t span[2];
  struct frame_view frames[4];
  uint64_t length;
  if (profile_turn_span(run->p, span) != 0) MUST(span[0] >= 0 && span[1] >= 0);
  profile_safe_until(run->p, byte(run->input) & 1);
  profile_limit_turn(run->p, byte(run->input) < 200 ? 0 : 1 + below(run->input, 8));
  uint32_t found = profile_frames(run->p, below(run->input, 8), 4, frames);
  profile_text(run->p, &length);
  for (uint32_t i = 0; i < found; i++) MUST(frames[i].name + frames[i].name_length <= length);
}

static void count_marks(struct run *run) {
  static uint64_t marks[16], sets[4096], counts[4096];
  int32_t stacks[8];
  for (size_t i = 0; i < 16; i++) marks[i] = 1ull << below(run->input, 64);
  for (size_t i = 0; i < 8; i++)
    stacks[i] = byte(run->input) < 250 ? (int32_t)below(run->input, 20) : (int32_t)wild(run->input);
  memset(sets, 0, sizeof sets);
  memset(counts, 0, sizeof counts);
  profile_count_marks(run->p, marks, 16, stacks, byte(run->input) & 1 ? stacks : NULL, 8, sets,
                      counts);
}

static void intern(struct run *run) {
  uint32_t given[32],
      lengths[4] = {below(run->input, 8), below(run->input, 8), below(run->input, 8), 0};
  int32_t nodes[4];
  for (size_t i = 0; i < 32; i++) given[i] = below(run->input, 20);
  profile_intern_stacks(run->p, given, lengths, 4, nodes);
  for (size_t i = 0; i < 4; i++) MUST(nodes[i] < (int32_t)run->p->node_count);
}

static void forget(struct run *run) {
  struct input *input = run->input;
  profile *p = run->p;
  uint8_t choice;
  switch (below(input, 6)) {
    case 0: profile_forget_tasks(p); break;
    case 1: profile_forget_cgroups(p); break;
    case 2:
      choice = byte(input);
      profile_forget_blocks(p, choice & 1 ? NONE : choice % 6, NONE, choice / 8, number(input, 1));
      break;
    case 3:
      if (p->block_count != 0) profile_forget_block(p, p->blocks[0]->module, p->blocks[0]->number);
      break;
    case 4:
      if (!run->is_finished) break;
      if (byte(input) > 128) p->is_module_refused = true; /* as if there had been too many */
      profile_start_segment(p, byte(input));
      p->rows.count = 0; /* their stacks are gone */
      break;
    case 5:
      choice = byte(input);
      profile_start_capture(p, choice & 1, choice >> 1 & 1);
      run->type = 0;
      add_event(run);
      break;
  }
}

static void step(struct run *run) {
  struct input *input = run->input;
  uint8_t choice = byte(input);
  bool was_finished = run->is_finished;
  run->is_finished = false;
  if (choice < 70) feed(run);
  else if (choice < 110) drain(run);
  else if (choice < 180) turn(run);
  else if (run->is_obedient && choice < 210) return;
  else if (choice < 185) replay(run, wild(input));
  else if (choice < 190) profile_resume(run->p, below(input, 2));
  else if (choice < 194) answer_all(run);
  else if (choice < 197) finish(run);
  else if (choice < 200) answer_mappings(run, some_pid(input));
  else if (choice < 203)
    profile_set_cgroup(run->p, (int32_t)below(input, 12), (int32_t)choice - 200);
  else if (choice < 206) answer_block(run, choice % 8, number(input, 1));
  else if (choice < 210) profile_window(run->p, choice % 2, wild(input));
  else if (choice < 215) look(run);
  else if (choice < 218) intern(run);
  else if (choice < 220) count_marks(run);
  else if (choice < 225) add_event(run);
  else if (choice < 228) profile_leave_out(run->p, below(input, 4));
  /* The next ones, then none for a while. */
  else if (choice < 230) allocations_left = below(input, 64);
  else if (choice < 233) allocations_left = UINT64_MAX;
  else {
    run->is_finished = was_finished;
    forget(run);
  }
}

void run_program(struct input *input) {
  static const uint64_t limits_bytes[] = {16 << 10, 48 << 10, 256 << 10,
                                          1 << 20,  64 << 20, UINT64_MAX};
  static const char idle[] = "default_idle\0mwait_idle";
  struct limits limits = {.limit_bytes = limits_bytes[below(input, 6)],
                          .tenant_limit_bytes = 256ull << below(input, 16)};
  uint8_t flags = byte(input);
  limits.asks = flags & 1;
  limits.has_time = flags >> 1 & 1;
  limits.has_trailer = flags >> 2 & 1;
  limits.tenant_nodes = 1u << below(input, 12);
  limits.tenant_unnamed = 1u << below(input, 8);
  limits.most_nodes = 1u << below(input, 12);
  if (byte(input) > 200) allocations_left = number(input, 1);
  struct run run = {
      .p = profile_new(&limits, idle, sizeof idle), .input = input, .is_obedient = flags >> 3 & 1};
  if (run.p == NULL) return;
  add_event(&run);
  for (uint32_t i = below(input, 3); i > 0; i--) add_event(&run);
  while (input->at < input->end) {
    step(&run);
    check(run.p);
  }
  turn(&run);
  check(run.p);
  profile_free(run.p); /* asserts that all memory was counted */
}
