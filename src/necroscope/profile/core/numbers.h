/* Numbers of a kernel file that is read every second (/proc/stat, vmstat, softirqs, pressure):
 * those at known places, and by how much each rose since the last read.
 *
 *   text      cpu0  10  20  30     cpu1  11 ...     words lie between spaces, line ends and '='
 *   word         0   1   2   3        4   5
 *   places           1   2                5         which are taken, ascending
 *   values          10  20               11         of the last read that fitted
 *   rises            1   0                2         since the read before it
 *
 * Words that do not begin with a digit, and where they stand, are the shape of a text. A text of
 * another shape is the caller's to understand: nothing is changed then. Python would make an object
 * of every word; under load each of them is fetched through caches that others have emptied.
 */
#ifndef NECROSCOPE_NUMBERS_H
#define NECROSCOPE_NUMBERS_H

#include <stdint.h>

#define END_BYTES 8

struct numbers {
  const uint32_t *places;
  int64_t *values, *rises;
  uint64_t shape;
  /* `longest_bytes`: of a record, 0 if the file is a single one (seq_read_iter). */
  uint32_t count, base, longest_bytes;
  int32_t file;
  char end[END_BYTES]; /* the word at which the text ends for us; empty if it is read whole */
};

int32_t numbers_learn(struct numbers *n, const char *text, uint64_t length);
int32_t numbers_compare(struct numbers *n, const char *text, uint64_t length);
int32_t numbers_read(struct numbers *n);

#endif
