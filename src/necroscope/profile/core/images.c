/* What a process has mapped: mappings sorted by address, shared by parent and child until one of
 * them maps something. */
#include "profile.h"

#include <string.h>

#define FEW_MAPPINGS 8

struct image *new_image(profile *p, uint32_t tenant, bool is_complete) {
  if (!charge(p, tenant, sizeof(struct image))) return NULL;
  struct image *image = resize(p, NULL, 0, sizeof *image);
  if (image == NULL) {
    discharge(p, tenant, sizeof *image);
    return NULL;
  }
  *image = (struct image){
      .processes = 1, .serial = ++p->image_serial, .tenant = tenant, .is_complete = is_complete};
  return image;
}

static uint64_t image_bytes(const struct image *image) {
  return sizeof *image + (uint64_t)image->capacity * sizeof *image->mappings;
}

static void image_free(profile *p, struct image *image) {
  if (image->processes != 0 || image->rows != 0) return;
  discharge(p, image->tenant, image_bytes(image));
  resize(p, image->mappings, image->capacity * sizeof *image->mappings, 0);
  resize(p, image, sizeof *image, 0);
}

/* For a row that waits. */
void image_hold(struct image *image) {
  if (image != NULL) image->rows++;
}

void image_release(profile *p, struct image *image) {
  if (image == NULL) return;
  image->rows--;
  image_free(p, image);
}

/* For a process. */
void image_drop(profile *p, struct image *image) {
  if (image == NULL) return;
  image->processes--;
  image_free(p, image);
}

/* By its capacity, which is what it takes: a tenant of many small processes has few mappings in
 * much memory. */
static bool reserve_mappings(profile *p, struct image *image, uint32_t count) {
  uint32_t capacity = image->capacity < FEW_MAPPINGS ? FEW_MAPPINGS : image->capacity;
  if (count <= image->capacity) return true;
  while (capacity < count) capacity *= 2;
  size_t before = image->capacity * sizeof *image->mappings,
         after = capacity * sizeof *image->mappings;
  if (!charge(p, image->tenant, after - before)) return false;
  struct mapping *made = resize(p, image->mappings, before, after);
  if (made == NULL) {
    discharge(p, image->tenant, after - before);
    return false;
  }
  image->mappings = made;
  image->capacity = capacity;
  return true;
}

struct image *image_of(profile *p, struct process *process) {
  if (process->image == NULL) process->image = new_image(p, tenant_of(p, process), !p->asks);
  return process->image;
}

/* An image that only this process has: children share their parent's until one of them maps
 * something. */
struct image *own_image(profile *p, struct process *process) {
  struct image *shared = image_of(p, process);
  if (shared == NULL || shared->processes + shared->rows == 1) return shared;
  struct image *image = new_image(p, tenant_of(p, process), shared->is_complete);
  if (image == NULL) return NULL;
  if (!reserve_mappings(p, image, shared->count)) {
    image_drop(p, image);
    return NULL;
  }
  if (shared->count != 0)
    memcpy(image->mappings, shared->mappings, shared->count * sizeof *shared->mappings);
  image->count = shared->count;
  image->is_bounded = shared->is_bounded;
  image_drop(p, shared);
  return process->image = image;
}

/* The first mapping that ends behind an address. */
static uint32_t first_behind(const struct image *image, uint64_t address) {
  uint32_t low = 0, high = image->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (image->mappings[middle].end <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

const struct mapping *find_mapping(const struct image *image, uint64_t address) {
  uint32_t at = first_behind(image, address);
  return at < image->count && image->mappings[at].start <= address ? &image->mappings[at] : NULL;
}

/* The newest mapping wins, because unmapping leaves no record; what it does not cover of older ones
 * stays. */
bool lay_over(profile *p, struct image *image, struct mapping new) {
  uint32_t first = first_behind(image, new.start), last = first;
  while (last < image->count && image->mappings[last].start < new.end) last++;
  struct mapping pieces[3];
  uint32_t count = 0;
  if (first < last && image->mappings[first].start < new.start) {
    pieces[count] = image->mappings[first];
    pieces[count++].end = new.start;
  }
  pieces[count++] = new;
  if (first < last && image->mappings[last - 1].end > new.end) {
    pieces[count] = image->mappings[last - 1];
    pieces[count++].start = new.end;
  }
  uint32_t total = image->count - (last - first) + count;
  if (total > MOST_MAPPINGS || !reserve_mappings(p, image, total)) return false;
  memmove(image->mappings + first + count, image->mappings + last,
          (image->count - last) * sizeof *image->mappings);
  memcpy(image->mappings + first, pieces, count * sizeof *pieces);
  image->count = total;
  image->serial = ++p->image_serial; /* code made at run time may be other code by now */
  return true;
}

/* Charged to whom it belongs by now; beyond the new tenant's bound it is given up. What others
 * share stays with them. */
void move_image(profile *p, struct process *process, uint32_t tenant) {
  struct image *image = process->image;
  if (image == NULL || image->processes != 1 || image->tenant == tenant) return;
  uint64_t bytes = image_bytes(image);
  if (charge(p, tenant, bytes)) {
    discharge(p, image->tenant, bytes);
    image->tenant = tenant;
  } else {
    image_drop(p, image);
    process->image = NULL;
    note_bounded(p, tenant);
  }
}
