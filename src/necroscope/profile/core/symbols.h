/* The symbol table of an ELF file, sorted. */
#ifndef NECROSCOPE_SYMBOLS_H
#define NECROSCOPE_SYMBOLS_H

#include <stdint.h>

#define TYPE_NONE 0
#define TYPE_FUNCTION 2
#define TYPE_INDIRECT 10

struct symbol {
  uint64_t start, size;
  uint32_t name;
  uint16_t section;
  uint8_t info;
};

struct section {
  uint64_t end;
  uint32_t has_code, reserved;
};

/* Its string table lies in the file from `strings_at` on, or is given by who asks. */
struct symbols {
  struct symbol *symbols;
  struct section *sections;
  uint64_t strings_at, strings_bytes;
  uint32_t count, section_count;
};

#endif
