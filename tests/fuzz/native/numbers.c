/* A text that is learnt at any places, then another one, or itself, that is compared with it. */
#include "fuzz.h"
#include "numbers.h"

#define MOST_PLACES 16

void run_numbers(struct input *input) {
  uint32_t places[MOST_PLACES], at = 0;
  int64_t values[MOST_PLACES], rises[MOST_PLACES];
  struct numbers numbers = {.places = places, .values = values, .rises = rises, .file = -1};
  uint8_t flags = byte(input);
  numbers.base = flags & 1 ? 16 : 10;
  numbers.count = below(input, MOST_PLACES + 1);
  if (flags & 2) memcpy(numbers.end, "intr", 4);
  for (uint32_t i = 0; i < numbers.count; i++) {
    at += below(input, 4);
    places[i] = at++;
  }
  uint64_t length = (uint64_t)(input->end - input->at);
  const char *text = (const char *)input->at;
  bool is_known = numbers_learn(&numbers, text, length) == 0;
  MUST(is_known == (numbers.shape != 0));
  /* The same text again: nothing rose. */
  MUST(numbers_compare(&numbers, text, length) == !is_known);
  for (uint32_t i = 0; is_known && i < numbers.count; i++) MUST(rises[i] == 0 && values[i] >= 0);
  numbers_compare(&numbers, text, length / 2);
  MUST(numbers_read(&numbers) < 0);
}
