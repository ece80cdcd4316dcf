#include "oasr/memory.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace oasr {

bool keep_large_blocks() {
#if defined(__GLIBC__)
  // By default glibc gives each block of some megabytes its own mapping and returns it when it is freed. The next
  // batch then pays for the same pages again, one fault for every 4 KiB: a third of the time of a decoder step.
  constexpr int keep = 1 << 30;  // free memory at the end of the heap that is kept
  return mallopt(M_MMAP_MAX, 0) == 1 && mallopt(M_TRIM_THRESHOLD, keep) == 1;
#else
  return false;
#endif
}

}  // namespace oasr
