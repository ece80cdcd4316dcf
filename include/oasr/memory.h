// What the process asks of its memory allocator.
#pragma once

namespace oasr {

// Let the C allocator keep large freed blocks for reuse; true when it could be told (glibc). Affects the process.
bool keep_large_blocks();

}  // namespace oasr
