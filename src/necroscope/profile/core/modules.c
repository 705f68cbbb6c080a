/* The files that hold code. Module 0 is the kernel, the next stands for code that no file holds,
 * the third for files without room. */
#include "profile.h"

#include <string.h>

#define MOST_PATH_BYTES 4096
#define MOST_MODULES_OF_TENANT (MOST_MODULES / 8)

static bool starts_with(const char *text, size_t length, const char *prefix) {
  size_t wanted = strlen(prefix);
  return length >= wanted && memcmp(text, prefix, wanted) == 0;
}

/* Paths in brackets (but the vdso), `//anon` and memory files hold code that was made at run time.
 */
static bool is_file(const char *path, size_t length) {
  static const char *const made[] = {"//anon", "/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV"};
  if (length == 6 && memcmp(path, "[vdso]", 6) == 0) return true;
  for (size_t i = 0; i < sizeof made / sizeof *made; i++)
    if (starts_with(path, length, made[i])) return false;
  return length != 0 && path[0] == '/';
}

static bool is_module(const profile *p, const struct module *module, const struct module *key,
                      const char *path, size_t length) {
  return module->major == key->major && module->minor == key->minor &&
         module->inode == key->inode && module->build_id_length == key->build_id_length &&
         memcmp(module->build_id, key->build_id, BUILD_ID_BYTES) == 0 &&
         module->path_length == length && memcmp(p->text.bytes + module->path, path, length) == 0;
}

static uint32_t add_module(profile *p, uint32_t kind, uint32_t tenant, const struct module *key,
                           const char *path, size_t length) {
  if (p->module_count >= MOST_MODULES ||
      !grow(p, (void **)&p->modules, &p->module_capacity, p->module_count + 1, sizeof *p->modules))
    return NONE;
  uint64_t at = text_add(p, path, length);
  if (at == UINT64_MAX) return NONE;
  struct module *module = &p->modules[p->module_count];
  *module = *key;
  module->kind = kind;
  module->tenant = tenant;
  module->path = at;
  module->path_length = (uint32_t)length;
  module->no_offset = NONE;
  return p->module_count++;
}

static uint32_t module_hash(const struct module *key, const char *path, size_t length) {
  uint64_t seed =
      key->inode ^ (uint64_t)key->major << 40 ^ (uint64_t)key->minor << 20 ^ key->build_id_length;
  return hash_bytes(path, length, seed) ^ hash_bytes(key->build_id, BUILD_ID_BYTES, 0);
}

uint32_t find_module(profile *p, uint32_t tenant, const struct module *key, const char *path,
                     size_t length) {
  if (!is_file(path, length)) return MADE_MODULE;
  if (length > MOST_PATH_BYTES) return BOUNDED_MODULE;
  uint32_t hash = module_hash(key, path, length), cursor, at;
  for (at = table_first(&p->module_table, hash, &cursor); at != NONE;
       at = table_next(&p->module_table, hash, &cursor))
    if (is_module(p, &p->modules[at], key, path, length)) return at;
  at = NONE;
  if (p->tenants[tenant].modules < MOST_MODULES_OF_TENANT && table_reserve(p, &p->module_table) &&
      charge(p, tenant, sizeof *p->modules + length)) {
    at = add_module(p, MODULE_FILE, tenant, key, path, length);
    if (at == NONE) discharge(p, tenant, sizeof *p->modules + length);
  }
  if (at == NONE) {
    p->is_module_refused = true;
    return BOUNDED_MODULE;
  }
  p->tenants[tenant].modules++;
  table_add(&p->module_table, hash, at);
  return at;
}

bool modules_start(profile *p) {
  struct module none = {0};
  return add_module(p, MODULE_KERNEL, THE_KERNEL, &none, "[kernel]", 8) == 0 &&
         add_module(p, MODULE_MADE, NOBODY, &none, "[jit]", 5) == MADE_MODULE &&
         add_module(p, MODULE_BOUNDED, NOBODY, &none, "[bounded]", 9) == BOUNDED_MODULE;
}

void modules_free(profile *p) {
  table_free(p, &p->module_table);
  resize(p, p->modules, p->module_capacity * sizeof *p->modules, 0);
  resize(p, p->text.bytes, p->text.capacity, 0);
}

/* Rows that wait know modules by their numbers. */
bool modules_are_crowded(const profile *p) {
  return p->pending_count == 0 && (p->is_module_refused || p->module_count > MOST_MODULES / 2);
}

static struct image *image_at(const profile *p, uint32_t slot) {
  uint32_t entry = p->process_table.slots[slot].entry;
  return entry == 0 ? NULL : p->processes[entry - 1].image;
}

/* Those that no process has mapped; the others move down to the free numbers. What knows modules by
 * number is forgotten, too. */
void forget_modules(profile *p) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->module_count; i++)
    p->modules[i].number = i <= BOUNDED_MODULE ? i : NONE;
  for (uint32_t i = 0; i < p->process_table.capacity; i++) {
    struct image *image = image_at(p, i);
    if (image == NULL) continue;
    image->is_visited = true;
    for (uint32_t at = 0; at < image->count; at++)
      p->modules[image->mappings[at].module].number = 0;
  }
  table_clear(&p->module_table);
  for (uint32_t i = 0; i < p->module_count; i++) {
    struct module module = p->modules[i];
    if (i > BOUNDED_MODULE && module.number == NONE) {
      discharge(p, module.tenant, sizeof module + module.path_length);
      p->tenants[module.tenant].modules--;
      continue;
    }
    p->modules[i].number = kept;
    if (i > BOUNDED_MODULE)
      table_add(&p->module_table,
                module_hash(&module, p->text.bytes + module.path, module.path_length), kept);
    module.number = p->modules[kept].number; /* that of another one, which is still needed */
    p->modules[kept++] = module;
  }
  for (uint32_t i = 0; i < p->process_table.capacity; i++) {
    struct image *image = image_at(p, i);
    if (image == NULL || !image->is_visited) continue; /* or it is shared, and was met before */
    image->is_visited = false;
    for (uint32_t at = 0; at < image->count; at++)
      image->mappings[at].module = p->modules[image->mappings[at].module].number;
  }
  p->module_count = kept;
  p->is_module_refused = false;
}

/* Paths move down over the names of functions that lay between them: the text never needs more room
 * than it has. */
void keep_paths(profile *p) {
  uint64_t length = 0;
  for (uint32_t i = 0; i < p->module_count; i++) {
    struct module *module = &p->modules[i];
    memmove(p->text.bytes + length, p->text.bytes + module->path, module->path_length);
    module->path = length;
    module->no_offset = NONE;
    length += module->path_length;
  }
  p->text.length = length;
}

PUBLIC int profile_module(const profile *p, uint32_t number, struct module_view *view) {
  if (number >= p->module_count) return -1;
  const struct module *module = &p->modules[number];
  *view = (struct module_view){module->kind,     module->major,
                               module->minor,    module->build_id_length,
                               module->inode,    p->text.bytes + module->path,
                               module->build_id, module->path_length};
  return 0;
}
