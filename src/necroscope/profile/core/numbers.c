/* Numbers of a kernel file, read and compared: numbers.h draws them. */
#define _GNU_SOURCE /* pread */
#include "numbers.h"
#include "profile.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ROOM_BYTES (1u << 16)
/* What a sequence file hands out at least before it stops at a record that does not fit. */
#define LEAST_PAGE_BYTES 4096u
/* So many digits always fit into 63 bits. */
#define MOST_DECIMALS 18u
#define MOST_HEXADECIMALS 15u

static bool is_space(unsigned char letter) { return letter <= ' ' || letter == '='; }

static bool is_digit(unsigned char letter, uint32_t base) {
  return (letter >= '0' && letter <= '9') || (base == 16 && letter >= 'a' && letter <= 'f');
}

static bool parse_number(const char *word, uint64_t length, uint32_t base, int64_t *value) {
  int64_t number = 0;
  if (length > (base == 16 ? MOST_HEXADECIMALS : MOST_DECIMALS)) return false;
  for (uint64_t i = 0; i < length; i++) {
    unsigned char letter = (unsigned char)word[i];
    if (!is_digit(letter, base)) return false;
    number = number * base + (letter <= '9' ? letter - '0' : letter - 'a' + 10);
  }
  *value = number;
  return true;
}

/* Puts the numbers of a text into `found`. Its shape; 0 if it is cut, or a number is none. */
static uint64_t take_numbers(const struct numbers *n, const char *text, uint64_t length,
                             int64_t *found) {
  uint64_t shape = n->base, end_length = strnlen(n->end, END_BYTES), at = 0;
  uint32_t word = 0, taken = 0;
  bool is_ended = end_length == 0 && length != 0 && text[length - 1] == '\n';
  for (;; word++) {
    while (at < length && is_space((unsigned char)text[at])) at++;
    if (at == length) break;
    uint64_t start = at;
    while (at < length && !is_space((unsigned char)text[at])) at++;
    if (taken < n->count && n->places[taken] == word) {
      if (!parse_number(text + start, at - start, n->base, &found[taken++])) return 0;
    } else if (!is_digit((unsigned char)text[start], n->base)) {
      is_ended |= at - start == end_length && memcmp(text + start, n->end, end_length) == 0;
      if (end_length != 0 && is_ended) break;
      shape = mix(shape ^ hash_bytes(text + start, at - start, word));
    }
  }
  shape = mix(shape ^ word);
  return is_ended && taken == n->count && shape != 0 ? shape : 0;
}

/* Of a text that the caller has understood: its shape, and the numbers to compare the next read
 * with. 0 if they are taken from now on. */
PUBLIC int32_t numbers_learn(struct numbers *n, const char *text, uint64_t length) {
  n->shape = length < ROOM_BYTES ? take_numbers(n, text, length, n->values) : 0;
  return n->shape == 0;
}

/* As `numbers_read`, of a text that was read before. */
PUBLIC int32_t numbers_compare(struct numbers *n, const char *text, uint64_t length) {
  if (n->shape == 0 || take_numbers(n, text, length, n->rises) != n->shape) return 1;
  for (uint32_t i = 0; i < n->count; i++) {
    int64_t now = n->rises[i];
    n->rises[i] = now - n->values[i];
    n->values[i] = now;
  }
  return 0;
}

/* 0 if the file has its old shape: then values and rises are those of this read. */
PUBLIC int32_t numbers_read(struct numbers *n) {
  static _Thread_local char room[ROOM_BYTES];
  uint64_t length = 0;
  ssize_t got;
  do {
    got = pread(n->file, room + length, ROOM_BYTES - length, (off_t)length);
    if (got < 0) return -errno;
    length += (uint64_t)got;
  } while (got > 0 && length < ROOM_BYTES && n->longest_bytes != 0 &&
           (uint64_t)got + n->longest_bytes > LEAST_PAGE_BYTES);
  return numbers_compare(n, room, length);
}
