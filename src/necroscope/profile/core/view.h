/* What Python sees of a profile: profile/library.py has the same structures. profile.h includes it.
 */
#ifndef NECROSCOPE_VIEW_H
#define NECROSCOPE_VIEW_H

/* What Python sees after a turn; pointers are good until the next call. */
struct view {
  const struct rows *rows;
  const char *names; /* NAME_BYTES each */
  const int32_t *cgroups; /* the caller's numbers */
  const int32_t *parents, *frames; /* nodes of the segment */
  const struct question *questions;
  /* Time u64, cpu i32, size u32, then the record; padded to 8 bytes. */
  const uint8_t *passed_on;
  uint64_t name_count, cgroup_count, node_count, frame_count, question_count, passed_on_bytes,
      pending_count;
  uint64_t latest_ns, queued_bytes, used_bytes, limit_bytes;
  /* Counts since the core was made. */
  uint64_t samples, idle, malformed, refused, cut, rounds, bounded, processes, functions;
};

/* What a frame of the segment stands for: `name` is a place in the text. */
struct frame_view {
  uint64_t name, offset;
  uint32_t module, kind, name_length, has_offset;
};

struct module_view {
  uint32_t kind, major, minor, build_id_length;
  uint64_t inode;
  const char *path;
  const uint8_t *build_id;
  uint64_t path_length;
};

struct ring {
  void *base; /* the mapped control page, with the data behind it */
  uint64_t data_bytes, page_bytes;
  int32_t cpu;
  uint32_t reserved;
};

#endif
