// A fork-join pool of the extension's own.
//
// Not OpenMP: torch brings an OpenMP runtime of its own, and two of them would fight for the same cores.
#pragma once

#include <cstddef>
#include <functional>

namespace oasr {

// Number of threads that share a parallel_for, the calling thread included. At first: 1.
int threads();

// Sets that number (n < 1 counts as 1). A change waits for a running parallel_for.
void set_threads(int n);

// Calls task(0) ... task(items - 1), each once, in any order, on any thread of the pool; returns when all are done.
//
// Items are claimed one at a time, so uneven ones balance. Calls from several threads run one after the other.
// The first exception of a task is thrown again here, after the other items. Workers start with the first call
// that needs them; in the child of a fork, which inherits none, they start again. Must not be nested.
void parallel_for(std::ptrdiff_t items, const std::function<void(std::ptrdiff_t)>& task);

}  // namespace oasr
