/* The entry of libFuzzer, or with FUZZ_MAIN a program that runs the files and directories it is
 * given. */
#include "fuzz.h"

uint64_t allocations_left = UINT64_MAX;

static bool may_allocate(void) {
  if (allocations_left == 0) return false;
  allocations_left -= allocations_left != UINT64_MAX;
  return true;
}

void *fuzz_malloc(size_t bytes) { return may_allocate() ? malloc(bytes) : NULL; }

void *fuzz_realloc(void *old, size_t bytes) { return may_allocate() ? realloc(old, bytes) : NULL; }

void *fuzz_calloc(size_t count, size_t bytes) {
  return may_allocate() ? calloc(count, bytes) : NULL;
}

int run_input(const uint8_t *bytes, size_t size) {
  struct input input = {bytes, bytes + size};
  allocations_left = UINT64_MAX;
  uint8_t choice = byte(&input);
  if (choice % 4 == 3) run_tenants(&input);
  else if (choice > 250) run_numbers(&input);
  else if (choice > 225) run_kallsyms(&input);
  else if (choice > 180) run_symbols(&input);
  else run_program(&input);
  return 0;
}

#ifndef FUZZ_MAIN
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) { return run_input(bytes, size); }
#else
#include <dirent.h>

static uint32_t ran;

static void run_file(const char *path) {
  static uint8_t content[1 << 20];
  FILE *file = fopen(path, "rb");
  MUST(file != NULL);
  size_t size = fread(content, 1, sizeof content, file);
  fclose(file);
  /* Of its exact size, so that a read behind its end is found. */
  uint8_t *exact = malloc(size + (size == 0));
  MUST(exact != NULL);
  memcpy(exact, content, size);
  run_input(exact, size);
  free(exact);
  ran++;
}

int main(int count, char **paths) {
  for (int i = 1; i < count; i++) {
    DIR *directory = opendir(paths[i]);
    if (directory == NULL) {
      run_file(paths[i]);
      continue;
    }
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
      char path[4096];
      if (entry->d_name[0] == '.') continue;
      snprintf(path, sizeof path, "%s/%s", paths[i], entry->d_name);
      run_file(path);
    }
    closedir(directory);
  }
  printf("%u inputs\n", ran);
  return 0;
}
#endif
