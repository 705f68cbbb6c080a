/* Where each type lies in a kernel's BTF, and which number those of some names have.
 *
 *   data    | header | type 1 | type 2 ... | strings |     a type: name, info, size or type; then
 *   places      -       ^24      ^40                       what its kind adds, for each member too
 *
 * Types have no index and differ in length, so that all 150,000 are passed to find a few: Python
 * would take 65 ms for it. */
#include "profile.h"

#include <string.h>

#define TYPE_BYTES 12u
#define LAST_KIND 19u

struct btf_name {
  uint32_t kind, text, number;
};

/* Bytes behind a type's twelve, by its kind: a fixed part, and a part for each of its members. */
static const uint8_t FIXED_BYTES[LAST_KIND + 1] = {[1] = 4, [3] = 12, [14] = 4, [17] = 4};
static const uint8_t MEMBER_BYTES[LAST_KIND + 1] = {
    [4] = 12, [5] = 12, [6] = 8, [13] = 8, [15] = 12, [19] = 12};

static uint32_t word_at(const uint8_t *data, uint64_t at) {
  uint32_t word;
  memcpy(&word, data + at, sizeof word);
  return word;
}

static bool is_wanted(uint32_t text, const uint32_t *texts, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (texts[i] == text) return true;
  return false;
}

/* How many types lie from `at` to `end`, the void type at place 0 included; -1 if a kind is not
 * known, a type is cut, or there are more than `room`. `named` gets those with a name among
 * `texts`, as long as there is room; the rest of it stays as it was. */
PUBLIC int64_t btf_scan(const uint8_t *data, uint64_t at, uint64_t end, const uint32_t *texts,
                        uint32_t text_count, uint32_t *places, uint64_t room,
                        struct btf_name *named, uint32_t named_room) {
  uint64_t count = 1;
  uint32_t found = 0;
  if (room == 0 || at > end || end > UINT32_MAX) return -1;
  places[0] = 0;
  while (at < end) {
    if (end - at < TYPE_BYTES || count == room) return -1;
    uint32_t text = word_at(data, at), info = word_at(data, at + 4), kind = info >> 24 & 0x1F;
    if (kind == 0 || kind > LAST_KIND) return -1;
    uint64_t members = info & 0xFFFF;
    uint64_t length = TYPE_BYTES + FIXED_BYTES[kind] + MEMBER_BYTES[kind] * members;
    if (length > end - at) return -1;
    if (text != 0 && found < named_room && is_wanted(text, texts, text_count))
      named[found++] = (struct btf_name){kind, text, (uint32_t)count};
    places[count++] = (uint32_t)at;
    at += length;
  }
  return (int64_t)count;
}
