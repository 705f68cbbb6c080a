/* A chain of addresses becomes a stack: each address the function around it, as far as the chain
 * leads through code. */
#include "profile.h"
#include "perf_abi.h"

#include <string.h>

static uint64_t chain_word(const uint64_t *words, uint32_t at) {
  uint64_t word;
  memcpy(&word, words + at, 8);
  return word;
}

enum context { IN_KERNEL, IN_USER, IN_GUEST_KERNEL, IN_GUEST_USER };

static enum context context_of(uint64_t mark) {
  if (mark == CONTEXT_USER) return IN_USER;
  if (mark == CONTEXT_GUEST_USER) return IN_GUEST_USER;
  return mark == CONTEXT_GUEST_KERNEL || mark == CONTEXT_GUEST ? IN_GUEST_KERNEL : IN_KERNEL;
}

struct walk {
  profile *p;
  struct image *image;
  int32_t pid;
  uint32_t tenant;
  bool is_forced; /* what is not known is unknown: it was asked for, and nobody answered */
  bool must_wait;
  uint32_t functions[MOST_FRAMES], count;
};

static bool has_asked_enough(const struct walk *walk) {
  return walk->p->tenants[walk->tenant].questions >= MOST_QUESTIONS;
}

/* Whether a question may be asked. Without room for it, what is unknown stays so. A program chooses
 * all callers that its samples show: were each a question, it would keep us busy with nothing else.
 */
static bool can_ask(struct walk *walk) {
  if (!walk->is_forced) walk->is_forced = has_asked_enough(walk) || !may_ask(walk->p);
  return !walk->is_forced;
}

static void ask_about(struct walk *walk, struct question *question, const struct mapping *mapping) {
  if (question->kind == 0) return;
  question->pid = walk->pid;
  if (mapping != NULL && question->kind == ASK_BLOCK) {
    question->first = (mapping->start - mapping->shift) >> BLOCK_BITS;
    question->last = (mapping->end - 1 - mapping->shift) >> BLOCK_BITS;
  }
  walk->p->tenants[walk->tenant].questions++;
  ask(walk->p, question);
}

static void add_function(struct walk *walk, uint32_t function) {
  walk->must_wait |= function == NONE;
  if (function == NONE && walk->is_forced && has_asked_enough(walk))
    note_bounded(walk->p, walk->tenant);
  walk->functions[walk->count++] = function == NONE ? walk->p->unknown : function;
}

/* False: the chain ends here. Programs built without frame pointers leave anything where a return
 * address should be: what lies further out than an address that is no code was found by following
 * it. */
static bool add_user(struct walk *walk, uint64_t address) {
  profile *p = walk->p;
  struct image *image = walk->image;
  bool was_asked = image != NULL && image->asked_turn == p->turn;
  if (image != NULL && !image->is_complete && walk->pid > 0 &&
      (was_asked ? !walk->is_forced : can_ask(walk))) {
    struct question question = {.kind = was_asked ? 0 : ASK_MAPPINGS};
    image->asked_turn = p->turn;
    walk->must_wait = true;
    ask_about(walk, &question, NULL);
    return false;
  }
  const struct mapping *mapping = image == NULL ? NULL : find_mapping(image, address);
  if (mapping == NULL) {
    bool is_bounded = image == NULL || image->is_bounded;
    walk->functions[walk->count++] = is_bounded && p->asks ? p->bounded : p->unknown;
    if (is_bounded && p->asks) note_bounded(p, walk->tenant);
    return false;
  }
  struct question question = {0};
  uint32_t kind = p->modules[mapping->module].kind, function = p->bounded;
  if (kind == MODULE_FILE)
    function = function_at(p, walk->tenant, mapping->module, address - mapping->shift,
                           can_ask(walk) ? &question : NULL);
  else if (kind == MODULE_MADE)
    function =
        function_made_at(p, walk->tenant, walk->image, address, can_ask(walk) ? &question : NULL);
  else note_bounded(p, walk->tenant);
  ask_about(walk, &question, mapping);
  add_function(walk, function);
  return true;
}

static void add_kernel(struct walk *walk, uint64_t address) {
  struct question question = {0};
  uint32_t function =
      function_at(walk->p, THE_KERNEL, 0, address, can_ask(walk) ? &question : NULL);
  ask_about(walk, &question, NULL);
  add_function(walk, function);
}

/* All addresses but a part's first are return addresses, which lie behind their call: one less lies
 * in it. What follows the user's mark was read from the program's own stack: nothing in there is a
 * mark, whatever it looks like. */
static void walk_chain(struct walk *walk, const uint64_t *words, uint32_t length) {
  enum context context = IN_KERNEL;
  bool is_first = true, has_mark = false;
  for (uint32_t i = 0; i < length; i++) {
    uint64_t word = chain_word(words, i);
    if (context != IN_USER && word >= CONTEXT_MAX) {
      context = context_of(word);
      is_first = has_mark = true;
      continue;
    }
    if (walk->count == MOST_FRAMES) {
      walk->p->cut++;
      return;
    }
    /* A chain without marks is judged by its addresses. */
    if (!has_mark) context = word >> 63 ? IN_KERNEL : IN_USER;
    uint64_t address = is_first || word == 0 ? word : word - 1;
    is_first = false;
    if (context == IN_USER) {
      if (!add_user(walk, address)) return;
    } else if (context == IN_KERNEL) {
      add_kernel(walk, address);
    } else {
      walk->functions[walk->count++] =
          context == IN_GUEST_KERNEL ? walk->p->guest : walk->p->unknown;
    }
  }
}

/* What the clock interrupted decides: an interrupt on an idle core is work. On a large node most
 * samples are of idle cores, so this is looked at before anything else. What has to be asked for
 * first is looked at again with the answer. */
static bool is_idle(struct walk *walk, const uint64_t *words, uint32_t length) {
  uint32_t at = 0;
  while (at < length && chain_word(words, at) >= CONTEXT_MAX) at++;
  if (at == length || !(chain_word(words, at) >> 63)) return false;
  add_kernel(walk, chain_word(words, at));
  walk->count = 0;
  bool must_wait = walk->must_wait;
  walk->must_wait = false;
  return !must_wait && walk->p->functions[walk->functions[0]].is_idle;
}

/* The stack of a chain: WAITS if answers are missing, DROPPED if the core was idle. */
int32_t stack_of(profile *p, const struct pending *sample, const uint64_t *words, bool is_forced) {
  struct walk walk;
  walk.p = p;
  walk.image = sample->image;
  walk.pid = sample->pid;
  walk.tenant = sample->tenant;
  walk.is_forced = is_forced;
  walk.must_wait = false;
  walk.count = 0;
  if (sample->pid == 0 && is_idle(&walk, words, sample->length)) return DROPPED;
  walk_chain(&walk, words, sample->length);
  if (walk.must_wait && !walk.is_forced) return WAITS;
  if (walk.count == 0) walk.functions[walk.count++] = p->unknown;
  int32_t stack = find_stack(p, sample->tenant, walk.functions, walk.count);
  p->refused += stack == -2;
  return stack == -2 ? DROPPED : stack;
}
