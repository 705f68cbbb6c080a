"""Reader of `perf record`'s files (tools/perf/Documentation/perf.data-file-format.txt), in file
mode and in pipe mode.

Ours because no library reads them: perf's own is part of the tool. What is in the head is read
here, records by the native core.
"""
