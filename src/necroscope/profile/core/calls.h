/* What the files of the core call of each other; profile.h includes it. */
#ifndef NECROSCOPE_CALLS_H
#define NECROSCOPE_CALLS_H

/* memory.c: every function that may fail says so by NULL, NONE or false, and leaves what there was
 * as it was. */
void *resize(profile *p, void *old, size_t old_bytes, size_t new_bytes);
bool grow(profile *p, void **array, uint32_t *capacity, uint32_t wanted, size_t item_bytes);
bool charge(profile *p, uint32_t tenant, uint64_t bytes);
void discharge(profile *p, uint32_t tenant, uint64_t bytes);
void note_bounded(profile *p, uint32_t tenant);
void seed_hashes(void);
uint64_t mix(uint64_t value);
uint32_t hash_bytes(const void *bytes, size_t length, uint64_t seed);
bool table_reserve(profile *p, struct table *table);
void table_add(struct table *table, uint32_t hash, uint32_t entry); /* after table_reserve */
void table_remove(struct table *table, uint32_t hash, uint32_t entry);
void table_clear(struct table *table);
void table_free(profile *p, struct table *table);
void table_fetch(const struct table *table, uint32_t hash);
uint32_t table_first(const struct table *table, uint32_t hash, uint32_t *cursor);
uint32_t table_next(const struct table *table, uint32_t hash, uint32_t *cursor);
/* UINT64_MAX if there is no room. */
uint64_t text_add(profile *p, const char *bytes, size_t length);

/* records.c */
bool decode_sample(const profile *p, const uint8_t *record, uint32_t size, uint32_t event,
                   struct sample *sample);
bool time_of(const profile *p, const uint8_t *record, uint32_t size, uint32_t kind, uint64_t *time);
uint64_t trailer_time(const profile *p, const uint8_t *record, uint32_t size);
int32_t trailer_cpu(const profile *p, const uint8_t *record, uint32_t size);
uint32_t event_of(const profile *p, const uint8_t *record, uint32_t size);

/* queue.c */
void sort_queue(profile *p);
void queue_free(profile *p);
uint32_t record_at(const uint8_t *bytes, uint64_t left, uint32_t *kind);

/* images.c */
struct image *new_image(profile *p, uint32_t tenant, bool is_complete);
void image_hold(struct image *image); /* for a row that waits */
void image_release(profile *p, struct image *image);
void image_drop(profile *p, struct image *image); /* for a process */
struct image *image_of(profile *p, struct process *process);
struct image *own_image(profile *p, struct process *process);
const struct mapping *find_mapping(const struct image *image, uint64_t address);
bool lay_over(profile *p, struct image *image, struct mapping new);
void move_image(profile *p, struct process *process, uint32_t tenant);

/* tasks.c */
struct task *find_task(profile *p, int32_t tid);
struct task *make_task(profile *p, int32_t pid, int32_t tid); /* or the one there is */
struct process *find_process(profile *p, int32_t pid, bool make);
void apply_record(profile *p, const uint8_t *record, uint32_t size);
void forget_exited(profile *p);
void bound_tasks(profile *p);
void relieve(profile *p);
PUBLIC void profile_map(profile *p, int32_t pid, uint64_t start, uint64_t end, uint64_t offset,
                        const struct module *key, const char *path, uint64_t path_length);
uint32_t tenant_of(const profile *p, const struct process *process);

/* modules.c */
bool modules_start(profile *p);
void modules_free(profile *p);
uint32_t find_module(profile *p, uint32_t tenant, const struct module *key, const char *path,
                     size_t path_length);
bool modules_are_crowded(const profile *p);
void forget_modules(profile *p);
void keep_paths(profile *p);

/* functions.c */
uint32_t find_function(profile *p, uint32_t tenant, uint32_t module, uint32_t kind,
                       const char *name, size_t length, uint64_t offset);
uint32_t function_at(profile *p, uint32_t tenant, uint32_t module, uint64_t offset,
                     struct question *question);
uint32_t function_made_at(profile *p, uint32_t tenant, const struct image *image, uint64_t address,
                          struct question *question);
bool functions_start(profile *p);
void bound_blocks(profile *p);
void functions_free(profile *p);
void forget_places(profile *p);

/* stacks.c */
/* Where a walk down the tree of stacks is: a node, and the hash that it is found by. */
struct descent {
  int32_t node;
  uint64_t hash;
};
#define START ((struct descent){-1, 0})
bool descend(profile *p, struct descent *down, uint32_t tenant, const uint32_t *functions,
             uint32_t count);
/* Innermost first; -2: no room. */
int32_t find_stack(profile *p, uint32_t tenant, const uint32_t *functions, uint32_t count);
int32_t bounded_stack(profile *p, uint32_t tenant);

/* profile.c */
void drop_pending(profile *p); /* of rows that nobody will finish */
void turn_free(profile *p);

/* chain.c */
#define WAITS (-3) /* the stack of a row that is not known yet */
#define DROPPED (-4) /* a row that was found to be idle, or for which there was no room */
int32_t stack_of(profile *p, const struct pending *sample, const uint64_t *words, bool is_forced);

/* rows.c */
bool reserve_row(profile *p);
int32_t number_of_name(profile *p, const char *name);
int32_t number_of_cgroup(profile *p, int32_t cgroup);
bool may_ask(profile *p);
void ask(profile *p, const struct question *question); /* after may_ask */
int32_t number_of_task(profile *p, int32_t tid);
void rows_free(profile *p);
bool finish_row(profile *p, uint32_t row);
void finish_cgroups(struct rows *rows);
void move_row(struct rows *rows, uint32_t from, uint32_t to);

PUBLIC void profile_forget_tasks(profile *p);
PUBLIC void profile_forget_blocks(profile *p, uint32_t module, uint32_t tenant, uint64_t from,
                                  uint64_t to);
PUBLIC int profile_learn_block(profile *p, uint32_t module, uint64_t number, uint32_t count,
                               const uint16_t *starts, const uint32_t *name_ends, const char *names,
                               uint64_t names_bytes);
PUBLIC void profile_free(profile *p);

#endif
