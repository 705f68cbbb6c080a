/* What lies at an address: modules, the blocks of functions that Python answered, and every
 * function met so far. */
#include "profile.h"

#include <string.h>

/* ---- functions ------------------------------------------------------------------------------- */

static bool is_idle_name(const profile *p, const char *name, size_t length) {
  /* The kernel's names may be followed by their module. */
  const char *tab = memchr(name, '\t', length);
  if (tab != NULL) length = (size_t)(tab - name);
  for (uint32_t at = 0; at < p->idle_names_length; at += (uint32_t)strlen(p->idle_names + at) + 1)
    if (strlen(p->idle_names + at) == length && memcmp(p->idle_names + at, name, length) == 0)
      return true;
  return false;
}

static uint32_t add_function(profile *p, struct function function, const char *name) {
  if (!grow(p, (void **)&p->functions, &p->function_capacity, p->function_count + 1,
            sizeof *p->functions))
    return NONE;
  function.name = text_add(p, name, function.name_length);
  if (function.name == UINT64_MAX) return NONE;
  function.frame = -1;
  p->functions[p->function_count] = function;
  return p->function_count++;
}

/* One function for all places of a module, once a tenant has shown more places without a name than
 * it may. */
static uint32_t without_offset(profile *p, uint32_t tenant, uint32_t module, uint32_t kind) {
  note_bounded(p, tenant);
  if (p->modules[module].no_offset == NONE) {
    uint32_t made =
        add_function(p, (struct function){.module = module, .kind = kind, .tenant = NOBODY}, "");
    p->modules[module].no_offset = made == NONE ? p->bounded : made;
  }
  return p->modules[module].no_offset;
}

/* The function with this name, or without one at this offset. */
uint32_t find_function(profile *p, uint32_t tenant, uint32_t module, uint32_t kind,
                       const char *name, size_t length, uint64_t offset) {
  uint64_t seed = (uint64_t)module << 32 | kind;
  uint32_t hash = length != 0 ? hash_bytes(name, length, seed) : hash_bytes(&offset, 8, seed),
           cursor, at;
  for (at = table_first(&p->function_table, hash, &cursor); at != NONE;
       at = table_next(&p->function_table, hash, &cursor)) {
    const struct function *known = &p->functions[at];
    if (known->module != module || known->kind != kind || known->name_length != length) continue;
    if (length == 0 ? known->offset == offset
                    : memcmp(p->text.bytes + known->name, name, length) == 0)
      return at;
  }
  struct tenant *charged = &p->tenants[tenant];
  bool is_unnamed = length == 0 && kind != FUNCTION_GIVEN;
  if (is_unnamed && charged->unnamed >= p->tenant_unnamed)
    return without_offset(p, tenant, module, kind);
  if (!table_reserve(p, &p->function_table) || !charge(p, tenant, sizeof *p->functions + length)) {
    note_bounded(p, tenant);
    return p->bounded;
  }
  struct function function = {.module = module,
                              .kind = kind,
                              .name_length = (uint32_t)length,
                              .offset = offset,
                              .tenant = tenant};
  function.has_offset = length == 0;
  function.is_idle = kind == FUNCTION_KERNEL && length != 0 && is_idle_name(p, name, length);
  at = add_function(p, function, name);
  if (at == NONE) {
    discharge(p, tenant, sizeof *p->functions + length);
    note_bounded(p, tenant);
    return p->bounded;
  }
  charged->unnamed += is_unnamed;
  table_add(&p->function_table, hash, at);
  return at;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static uint32_t block_hash(uint32_t module, uint64_t number) {
  return (uint32_t)(mix(mix(number) ^ module) >> 8);
}

PUBLIC void profile_forget_block(profile *p, uint32_t module, uint64_t number);

static struct block *find_block(profile *p, uint32_t module, uint64_t number) {
  uint32_t hash = block_hash(module, number), cursor, at;
  for (at = table_first(&p->block_table, hash, &cursor); at != NONE;
       at = table_next(&p->block_table, hash, &cursor))
    if (p->blocks[at]->module == module && p->blocks[at]->number == number) return p->blocks[at];
  return NULL;
}

/* The same calls are on the stack in most samples: what lies at the last places is kept, until
 * something is forgotten. */
static struct recent *recent_at(profile *p, uint32_t module, uint64_t offset) {
  return &p->recent[mix(offset ^ (uint64_t)module << 40) >> 16 & (RECENT_PLACES - 1)];
}

static void forget_recent(profile *p) { memset(p->recent, 0xFF, sizeof p->recent); /* no module */ }

static void count_block(profile *p, uint32_t tenant, int64_t bytes) {
  p->block_bytes += (uint64_t)bytes;
  p->tenants[tenant].block_bytes += (uint64_t)bytes;
}

static struct block *add_block(profile *p, uint32_t tenant, uint32_t module, uint64_t number) {
  if (!table_reserve(p, &p->block_table)) return NULL;
  if (!grow(p, (void **)&p->blocks, &p->block_capacity, p->block_count + 1, sizeof *p->blocks))
    return NULL;
  if (!charge(p, tenant, sizeof(struct block))) return NULL;
  struct block *block = resize(p, NULL, 0, sizeof *block);
  if (block == NULL) {
    discharge(p, tenant, sizeof *block);
    return NULL;
  }
  count_block(p, tenant, sizeof *block);
  *block = (struct block){
      .number = number, .module = module, .tenant = tenant, .size_bytes = sizeof *block};
  table_add(&p->block_table, block_hash(module, number), p->block_count);
  p->blocks[p->block_count++] = block;
  return block;
}

/* The function around an offset of a module (an address of the kernel). NONE: it has to be asked
 * for, by `question` if its kind is set. Without a `question` nothing new is asked for. */
uint32_t function_at(profile *p, uint32_t tenant, uint32_t module, uint64_t offset,
                     struct question *question) {
  struct recent *recent = recent_at(p, module, offset);
  if (recent->module == module && recent->offset == offset) return recent->function;
  uint32_t kind = module == 0 ? FUNCTION_KERNEL : FUNCTION_USER;
  uint64_t number = offset >> BLOCK_BITS;
  struct block *block = find_block(p, module, number);
  if (block != NULL && block->is_bounded) {
    /* There was no room for it in the share of who asked; another has a share of its own. */
    if (block->tenant == tenant) return without_offset(p, tenant, module, kind);
    profile_forget_block(p, module, number);
    block = NULL;
  }
  if (block == NULL) {
    if (question == NULL) return NONE;
    block = add_block(p, tenant, module, number);
    if (block == NULL) return without_offset(p, tenant, module, kind);
  }
  if (!block->is_known) {
    if (question != NULL && block->asked_turn != p->turn) {
      *question = (struct question){
          .kind = ASK_BLOCK, .module = module, .where = number, .first = number, .last = number};
      block->asked_turn = p->turn;
    }
    return NONE;
  }
  if (block->count == 0) return find_function(p, tenant, module, kind, "", 0, offset);
  uint16_t within = (uint16_t)(offset & ((1u << BLOCK_BITS) - 1));
  uint32_t low = 0, high = block->count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (block->starts[middle] <= within) low = middle;
    else high = middle;
  }
  if (block->functions[low] != NONE) {
    *recent = (struct recent){offset, module, block->functions[low]};
    return recent->function;
  }
  uint32_t name = low == 0 ? 0 : block->name_ends[low - 1], length = block->name_ends[low] - name;
  uint32_t function =
      find_function(p, tenant, module, kind, block->names + name, length, length != 0 ? 0 : offset);
  if (length != 0 && function != p->bounded) block->functions[low] = function;
  return function;
}

/* An answer: where in a block which function begins (the first at 0), and the names one after the
 * other; an empty one is none. */
PUBLIC int profile_learn_block(profile *p, uint32_t module, uint64_t number, uint32_t count,
                               const uint16_t *starts, const uint32_t *name_ends, const char *names,
                               uint64_t names_bytes) {
  if (module >= p->module_count || count > 1u << BLOCK_BITS) return -1;
  struct block *block = find_block(p, module, number);
  if (block == NULL) block = add_block(p, p->modules[module].tenant, module, number);
  if (block == NULL || block->is_known) return -1;
  block->is_known = true;
  for (uint32_t i = 0; i < count; i++)
    if ((i == 0 ? starts[0] != 0 : starts[i] <= starts[i - 1]) ||
        (i != 0 && name_ends[i] < name_ends[i - 1]))
      return -1;
  if (names_bytes > UINT32_MAX / 2 || (count != 0 && name_ends[count - 1] > names_bytes)) return -1;
  names_bytes = count == 0 ? 0 : name_ends[count - 1];
  uint64_t size_bytes = sizeof *block + (uint64_t)count * (4 + 4 + 2) + names_bytes;
  block->is_bounded = !charge(p, block->tenant, size_bytes - sizeof *block);
  if (block->is_bounded) return -1;
  struct block *bigger = resize(p, block, sizeof *block, size_bytes);
  if (bigger == NULL) {
    discharge(p, block->tenant, size_bytes - sizeof *block);
    block->is_bounded = true;
    return -1;
  }
  uint32_t hash = block_hash(module, number), cursor,
           at = table_first(&p->block_table, hash, &cursor);
  while (at != NONE && p->blocks[at] != block) at = table_next(&p->block_table, hash, &cursor);
  if (at != NONE) p->blocks[at] = bigger;
  count_block(p, bigger->tenant, (int64_t)(size_bytes - sizeof *block));
  bigger->size_bytes = (uint32_t)size_bytes;
  bigger->count = count;
  bigger->functions = (uint32_t *)(void *)(bigger + 1);
  bigger->name_ends = bigger->functions + count;
  bigger->starts = (uint16_t *)(void *)(bigger->name_ends + count);
  bigger->names = (char *)(bigger->starts + count);
  memset(bigger->functions, 0xFF, (size_t)count * 4); /* NONE */
  if (count != 0) {
    memcpy(bigger->name_ends, name_ends, (size_t)count * 4);
    memcpy(bigger->starts, starts, (size_t)count * 2);
    memcpy(bigger->names, names, names_bytes);
  }
  return 0;
}

/* Forget blocks of a module (NONE: of all), of a tenant (NONE: of all), outside of [from, to). They
 * can be asked for again. */
PUBLIC void profile_forget_blocks(profile *p, uint32_t module, uint32_t tenant, uint64_t from,
                                  uint64_t to) {
  forget_recent(p);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->block_count; i++) {
    struct block *block = p->blocks[i];
    bool is_meant =
        (module == NONE || block->module == module) && (tenant == NONE || block->tenant == tenant);
    if (is_meant && !(block->number >= from && block->number < to)) {
      discharge(p, block->tenant, block->size_bytes);
      count_block(p, block->tenant, -(int64_t)block->size_bytes);
      resize(p, block, block->size_bytes, 0);
    } else {
      p->blocks[kept++] = block;
    }
  }
  p->block_count = kept;
  table_clear(&p->block_table);
  for (uint32_t i = 0; i < kept; i++)
    table_add(&p->block_table, block_hash(p->blocks[i]->module, p->blocks[i]->number), i);
}

/* One block that nobody could answer about: it may be known when it is asked for again. */
PUBLIC void profile_forget_block(profile *p, uint32_t module, uint64_t number) {
  forget_recent(p);
  uint32_t hash = block_hash(module, number), cursor, at;
  for (at = table_first(&p->block_table, hash, &cursor); at != NONE;
       at = table_next(&p->block_table, hash, &cursor))
    if (p->blocks[at]->module == module && p->blocks[at]->number == number) break;
  if (at == NONE) return;
  struct block *block = p->blocks[at], *last = p->blocks[p->block_count - 1];
  table_remove(&p->block_table, hash, at);
  if (last != block) {
    uint32_t last_hash = block_hash(last->module, last->number);
    table_remove(&p->block_table, last_hash, p->block_count - 1);
    table_add(&p->block_table, last_hash, at);
    p->blocks[at] = last;
  }
  p->block_count--;
  discharge(p, block->tenant, block->size_bytes);
  count_block(p, block->tenant, -(int64_t)block->size_bytes);
  resize(p, block, block->size_bytes, 0);
}

/* Too many blocks: the tenant that has most of them has to ask again. */
void bound_blocks(profile *p) {
  while (p->block_bytes > p->limit_bytes / 8) {
    uint32_t most = 0;
    for (uint32_t i = 1; i < p->tenant_count; i++)
      if (p->tenants[i].block_bytes > p->tenants[most].block_bytes) most = i;
    profile_forget_blocks(p, NONE, most, 0, 0);
  }
}

/* ---- code made at run time ------------------------------------------------------------------- */

static uint32_t place_hash(uint32_t image, uint64_t address) {
  return (uint32_t)(mix(mix(address) ^ image) >> 8);
}

static uint32_t find_place(const profile *p, uint32_t image, uint64_t address) {
  uint32_t hash = place_hash(image, address), cursor, at;
  for (at = table_first(&p->place_table, hash, &cursor); at != NONE;
       at = table_next(&p->place_table, hash, &cursor))
    if (p->places[at].image == image && p->places[at].address == address) return at;
  return NONE;
}

static uint32_t add_place(profile *p, uint32_t tenant, uint32_t image, uint64_t address) {
  if (!table_reserve(p, &p->place_table) || !charge(p, tenant, sizeof *p->places)) return NONE;
  if (!grow(p, (void **)&p->places, &p->place_capacity, p->place_count + 1, sizeof *p->places)) {
    discharge(p, tenant, sizeof *p->places);
    return NONE;
  }
  p->places[p->place_count] =
      (struct place){.address = address, .image = image, .tenant = tenant, .function = NONE};
  table_add(&p->place_table, place_hash(image, address), p->place_count);
  return p->place_count++;
}

/* As function_at. */
uint32_t function_made_at(profile *p, uint32_t tenant, const struct image *image, uint64_t address,
                          struct question *question) {
  uint32_t at = find_place(p, image->serial, address);
  if (at != NONE && p->places[at].function != NONE) return p->places[at].function;
  if (question == NULL) return NONE;
  if (at == NONE) at = add_place(p, tenant, image->serial, address);
  if (at == NONE) {
    note_bounded(p, tenant);
    return p->bounded;
  }
  if (p->places[at].asked_turn != p->turn)
    *question = (struct question){.kind = ASK_PLACE, .module = image->serial, .where = address};
  p->places[at].asked_turn = p->turn;
  return NONE;
}

/* An answer; no name is an answer, too. */
PUBLIC void profile_learn_place(profile *p, uint32_t image, uint64_t address, const char *name,
                                uint64_t length) {
  uint32_t at = find_place(p, image, address);
  if (at == NONE) return;
  uint32_t tenant = p->places[at].tenant;
  p->places[at].function =
      length == 0 ? p->unknown
                  : find_function(p, tenant, MADE_MODULE, FUNCTION_JIT, name, length, 0);
}

/* ---- start, segments ------------------------------------------------------------------------- */

static bool add_fixed_functions(profile *p) {
  p->unknown =
      add_function(p, (struct function){.module = MADE_MODULE, .kind = FUNCTION_UNKNOWN}, "");
  p->guest = add_function(p, (struct function){.module = 0, .kind = FUNCTION_GUEST}, "");
  p->bounded =
      add_function(p, (struct function){.module = BOUNDED_MODULE, .kind = FUNCTION_BOUNDED}, "");
  return p->bounded != NONE && p->guest != NONE && p->unknown != NONE;
}

bool functions_start(profile *p) {
  forget_recent(p);
  return add_fixed_functions(p);
}

void forget_places(profile *p) {
  for (uint32_t i = 0; i < p->place_count; i++)
    discharge(p, p->places[i].tenant, sizeof *p->places);
  p->place_count = 0;
  table_clear(&p->place_table);
}

/* All functions, their names and the places that lead to them; modules and what was answered about
 * files stay. */
static void forget_functions(profile *p) {
  forget_places(p);
  for (uint32_t i = 0; i < p->function_count; i++) {
    const struct function *function = &p->functions[i];
    /* Those that stand for many places belong to nobody. */
    if (function->name_length != 0 || function->has_offset)
      discharge(p, function->tenant, sizeof *function + function->name_length);
  }
  for (uint32_t i = 0; i < p->block_count; i++)
    if (p->blocks[i]->count != 0)
      memset(p->blocks[i]->functions, 0xFF, (size_t)p->blocks[i]->count * 4);
  p->function_count = 0;
  table_clear(&p->function_table);
  keep_paths(p);
  add_fixed_functions(p); /* the arrays are there: it cannot fail */
}

/* Numbers of frames and stacks begin again. `most_functions`: with more than these, all are
 * forgotten and learnt as they come. Returns 1 if modules have other numbers now: those that nobody
 * has mapped any more are forgotten when there are too many. */
PUBLIC int profile_start_segment(profile *p, uint32_t most_functions) {
  forget_recent(p);
  bool is_crowded = modules_are_crowded(p);
  for (uint32_t i = 0; i < p->tenant_count; i++) p->tenants[i].nodes = p->tenants[i].unnamed = 0;
  if (is_crowded) {
    profile_forget_blocks(p, NONE, NONE, 0, 0);
    forget_modules(p);
  }
  if (is_crowded || p->function_count > most_functions) forget_functions(p);
  if (p->place_count > most_functions) forget_places(p);
  for (uint32_t i = 0; i < p->function_count; i++) p->functions[i].frame = -1;
  p->node_count = p->frame_count = 0;
  table_clear(&p->node_table);
  return is_crowded;
}

void functions_free(profile *p) {
  profile_forget_blocks(p, NONE, NONE, 0, 0);
  table_free(p, &p->block_table);
  table_free(p, &p->function_table);
  table_free(p, &p->place_table);
  resize(p, p->blocks, p->block_capacity * sizeof *p->blocks, 0);
  resize(p, p->functions, p->function_capacity * sizeof *p->functions, 0);
  resize(p, p->places, p->place_capacity * sizeof *p->places, 0);
}
